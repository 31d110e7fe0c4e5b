"""What must not reach a trace, a log, a page or an error: keys, tokens and passwords.

One redactor for all of them.  Secrets are known by their shape or the name in front of them (`secrets`), and as the
values of environment variables that are named for one.
"""

from __future__ import annotations

import functools
import json
import os
import re
from collections.abc import Callable, Mapping
from math import isfinite
from typing import Any, cast

from rlm_loop.traces.secrets import BEGIN, MARKS, SHAPES, STEMS, holds_secret, named_secrets, speaks_of_secret

REDACTED = "[redacted]"
_TOLD: set[str] = set()

_WORDS = frozenset(
    ["KEY", "TOKEN", "SECRET", "PASSWORD", "PASSWD", "PASSPHRASE", "PASS", "PWD", "CREDENTIAL", "CREDENTIALS", "APIKEY"]
)
_ENDINGS = ("PASSWORD", "PASSWD", "APIKEY", "SECRET", "TOKEN")
#: A name that ends so says where something is or what it is called, not what it is.
_ABOUT = frozenset(
    [
        *("FILE", "PATH", "DIR", "FOLDER", "HOST", "URL", "URI", "NAME", "TYPE", "ID", "SOCK", "SIZE", "LENGTH"),
        *("PUBLIC", "BACKEND", "LAYOUT"),
    ]
)
#: Lower-case words, joined perhaps: such a value stands in prose, too.
_COMMON = re.compile(r"[A-Za-z]?[a-z]*(?:[-_. ][A-Za-z]?[a-z]+)*|[A-Z]+(?:[-_. ][A-Z]+)*")
_PATH = re.compile(r"(?:~|\.{0,2}|[A-Za-z]:)(?:[/\\][\w. -]+){2,}[/\\]?")
_SHORTEST, _LONGEST_WORD = 12, 20
_KEPT = 20_000
#: What is shorter holds no secret that could be told: the shortest is a password in an address, `://a:b@`.
_LEAST = 7
_NAMES = 4096
_DEEPEST = 900  # levels; beyond, a value is written out as text (see `trace.plain`)
_NO_TEXT = frozenset((int, bool, type(None)))
_JSON = frozenset((dict, list, tuple))


class Redactor:
    """Replaces what looks like a secret by `[redacted]`; a text without any comes back as it is."""

    def __init__(self, values: frozenset[str] = frozenset()) -> None:
        forms = {form for v in values for form in (v, json.dumps(v)[1:-1], json.dumps(json.dumps(v))[3:-3])}
        self._own = tuple(sorted(forms, key=len, reverse=True))
        any_of = "|".join(map(re.escape, self._own))
        self._values = re.compile(rf"(?:{BEGIN}|(?<!\w))(?:{any_of})(?!\w)") if self._own else None
        # a run says the same texts again and again: as a reply, as a message, as what was run
        self._cached = functools.lru_cache(maxsize=512)(self._redacted)
        self._names = _Names(self)

    def __call__(self, text: str) -> str:
        return self._cached(text) if len(text) <= _KEPT else self._redacted(text)

    def _redacted(self, text: str) -> str:
        if self._values is not None and _any_in(text, self._own):
            text = self._values.sub(REDACTED, text)
        if _any_in(text, MARKS):
            text = SHAPES.sub(REDACTED, text)
        return _without_named(text) if _any_in(text.lower(), STEMS) else text

    def value(self, value: Any, name: str = "", default: Callable[[Any], Any] | None = None) -> Any:
        """A JSON value with every text in it redacted; one in a field named for a secret by that name, too.

        `default` makes a JSON value, of one level at least, of what is none; without it, that is kept as it is.
        Raises `RecursionError` for a value that is nested too deeply, or holds itself.
        """
        # No function calls itself here: every event of a trace comes by, and a call for each of its values is felt.
        hide, names = self._cached, self._names
        root: list[Any] = [None]
        todo: list[tuple[Any, Any, Any, str, int]] = [(root, 0, value, name, 0)]
        while todo:
            into, at, item, name, depth = todo.pop()
            kind = type(item)
            if kind is str:
                if name and names[name][1] and holds_secret(name, item):
                    item = REDACTED
                elif len(item) >= _LEAST:
                    item = hide(item) if len(item) <= _KEPT else self._redacted(item)
                into[at] = item
            elif kind in _NO_TEXT or (kind is float and isfinite(item)):
                into[at] = item
            elif kind is dict:
                found = into[at] = dict[str, Any]()
                for key, inner in cast("dict[str, Any]", item).items():
                    known, speaks = names[key]
                    kind = type(inner)
                    if kind in _NO_TEXT or (kind is str and not speaks and len(inner) < _LEAST):
                        found[known] = inner
                    elif kind is str and not speaks and len(inner) <= _KEPT:
                        found[known] = hide(inner)
                    else:
                        found[known] = None  # its place in the order
                        todo.append((found, known, inner, key, depth + 1))
            elif kind is list or kind is tuple:
                listed = into[at] = list[Any](item)
                for number, inner in enumerate(listed):
                    if type(inner) not in _NO_TEXT:
                        todo.append((listed, number, inner, "", depth + 1))
            elif isinstance(item, str):
                todo.append((into, at, str(item), name, depth))
            elif default is None or isinstance(item, int):
                into[at] = item
            else:
                made = default(item)
                if isinstance(made, float):
                    into[at] = made
                else:
                    todo.append((into, at, made, name, depth + 1))
            if depth > _DEEPEST:
                raise RecursionError("a value is nested too deeply to be redacted")
        return root[0]


class _Names(dict[str, tuple[str, bool]]):
    """Names of fields as they may be kept, and whether they speak of a secret; each looked at once."""

    def __init__(self, hide: Redactor) -> None:
        super().__init__()
        self._hide = hide

    def __missing__(self, name: str) -> tuple[str, bool]:
        known = self._hide(str(name)), speaks_of_secret(str(name))
        if len(self) < _NAMES:
            self[name] = known
        return known


def redactor(environ: Mapping[str, str]) -> Redactor:
    """The redactor that also knows the secrets of an environment.

    Those are the values of variables whose name has a whole word such as KEY, TOKEN, SECRET or PASSWORD
    (KEYBOARD_LAYOUT has none): 12 characters or more, no path and no common word; they are found as whole words.
    """
    return _made(frozenset(v for k, v in environ.items() if len(v) >= _SHORTEST and _secret(k, v)) | _TOLD)


def remember(key: object) -> None:
    """A key that was given to a model in Python: from now on it is a secret of this process, like one of the
    environment.  What could be a word is not (`EMPTY`, `no-key-needed`)."""
    if isinstance(key, str) and len(key) >= _SHORTEST and _secret("KEY", key):
        _TOLD.add(key)


def redact(text: str) -> str:
    """A text without secrets, those of this process's environment as it is now included."""
    return redactor(os.environ)(text)


@functools.lru_cache(maxsize=8)
def _made(values: frozenset[str]) -> Redactor:
    return Redactor(values)


@functools.lru_cache(maxsize=1024)
def _secret(name: str, value: str) -> bool:
    words = re.split(r"[^A-Z0-9]+", name.upper())
    if words[-1] in _ABOUT or name.upper() in ("PWD", "OLDPWD"):
        return False
    if not any(w in _WORDS or w.endswith(_ENDINGS) for w in words):
        return False
    if len(value) < _LONGEST_WORD and _COMMON.fullmatch(value):
        return False
    return not _PATH.fullmatch(value)


def _any_in(text: str, parts: tuple[str, ...]) -> bool:
    for part in parts:  # noqa: SIM110  twice as fast as `any`, and every text of a trace passes here
        if part in text:
            return True
    return False


def _without_named(text: str) -> str:
    parts: list[str] = []
    done = 0
    for begin, end in named_secrets(text):
        parts += [text[done:begin], REDACTED]
        done = end
    return "".join([*parts, text[done:]]) if parts else text
