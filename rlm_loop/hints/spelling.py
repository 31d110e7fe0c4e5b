"""What a misspelt argument is answered with: a line that names the right one."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Iterable, Mapping
from difflib import get_close_matches
from types import MappingProxyType
from typing import Any, TypeVar, cast

C = TypeVar("C", bound=Callable[..., Any])


def nearest(wrong: str, known: Iterable[str]) -> str:
    """`"; did you mean 'steps'?"`, or nothing where no known name is near."""
    near = get_close_matches(wrong, list(known), 1)
    return f"; did you mean {near[0]!r}?" if near else ""


def spelled(
    hints: Mapping[str, str] | None = None,
    error: type[Exception] = TypeError,
    also: Mapping[str, str] = MappingProxyType({}),
) -> Callable[[C], C]:
    """Decorates a class or a function: a keyword that it does not take is an `error` of one line that names the
    nearest.

    `hints` say of names that people type where the thing meant is said instead; a class takes over those of its bases.
    `also` are second names of keywords, which are taken as the first.
    """

    def decorate(target: C) -> C:
        if not isinstance(target, type):
            known = list(inspect.signature(target).parameters)[1:]
            return _checked(target, target.__name__, known, dict(hints or {}), error, also)
        told = {**getattr(target, "_hints", {}), **(hints or {})}
        made = cast("Any", target)
        made._hints = told
        known = list(inspect.signature(target).parameters)
        made.__init__ = _checked(made.__init__, target.__name__, known, told, error, also)
        return cast("C", made)

    return decorate


def _checked(
    function: Any,
    name: str,
    known: list[str],
    hints: Mapping[str, str],
    error: type[Exception],
    also: Mapping[str, str],
) -> Any:
    @functools.wraps(function)  # help and signature stay those of the function
    def checked(*args: Any, **given: Any) -> Any:
        for word in also.keys() & given.keys():
            given[also[word]] = given.pop(word)
        for word in given:
            if word not in known:
                raise error(f"{name} has no {word!r}{_instead(word, known, hints)}")
        return function(*args, **given)

    return checked


def _instead(wrong: str, known: list[str], hints: Mapping[str, str]) -> str:
    """A hint for just this name, else the name that begins so, else the nearest; a far hint would mislead."""
    names = [*known, *hints]
    near = [wrong] if wrong in hints else [name for name in names if len(wrong) > 2 and name.startswith(wrong)]
    near = near or get_close_matches(wrong, names, 1, 0.75)
    if near and near[0] not in hints:
        return f"; did you mean {near[0]!r}?"
    if near:
        return f": {hints[near[0]]}"
    return nearest(wrong, known) or f"; it has {', '.join(known)}"
