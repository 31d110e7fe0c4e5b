"""Taking secrets out of all that is kept or shown: traces, logs, pages and errors.

A secret is known by its shape or by the name in front of it (`secret_kinds.toml`), as a private key, or as the value of
an environment variable that is named for one.  Traces hold code that models write, so a name alone says little:
`password = input()`, `token=tokens[i]` and `{"token": "the"}` stay as they are.

What is looked for beyond a mark is bounded, so no text takes time that grows with its square.
"""

from __future__ import annotations

import base64
import functools
import json
import os
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, cast

REDACTED = "[redacted]"
_REMEMBERED: set[str] = set()
_SHORTEST, _LONGEST_WORD = 12, 20  # characters of a value of the environment, and of one that may be a word
_LEAST = 7  # a shorter text holds no secret that could be told: the shortest is a password in an address, `://a:b@`
_KEPT = 20_000  # characters of a text of which the result is kept
#: Values that each rule takes for a secret.
_PROBES = ("aB3dE6gH9jK2mN5pQ8rS1tU4vW7xY0z", "sid=aB3dE6gH9jK2mN5pQ8rS1tU4vW7xY0z", "dXNlcjpwYXNzd29yZA==")


@dataclass
class Kind:
    """A kind of secret, as `secret_kinds.toml` has it."""

    name: str
    marks: str
    rest: str
    gone: list[str]
    stays: tuple[str, ...] = ()
    judge: str = ""
    before: str = "<BEGIN>"
    back: int = 0
    named: bool = False

    @functools.cached_property
    def pattern(self) -> re.Pattern[str]:
        """The pattern, which begins `back` characters before a mark; compiled when a mark was seen."""
        marks = "|".join(map(re.escape, sorted(self.marks.split(), key=len, reverse=True)))
        return re.compile(_filled(f"{self.before}(?:{marks}){self.rest}"), re.IGNORECASE * self.named)


@functools.cache
def _data() -> dict[str, Any]:
    import tomllib  # here, since `import rlm_loop` needs neither it nor the file

    return tomllib.loads(Path(__file__).with_name("secret_kinds.toml").read_text("utf-8"))


def _filled(pattern: str) -> str:
    """Return a pattern with the named pieces in it."""
    for name, piece in reversed(_data()["pieces"].items()):
        pattern = pattern.replace(f"<{name}>", piece)
    return pattern


@functools.cache
def _value(name: str) -> re.Pattern[str]:
    return re.compile(_filled(_data()["values"][name]))


@functools.cache
def kinds() -> list[Kind]:
    """Return all kinds: tokens, and secrets with a name in front of them."""
    more: dict[str, Any] = {"before": "", "named": True}
    return [*(Kind(**kind) for kind in _data()["token"]), *(Kind(**(more | kind)) for kind in _data()["named"])]


@functools.cache
def _marks() -> list[tuple[str, Kind]]:
    return [(mark, kind) for kind in kinds() for mark in kind.marks.split()]


class Redactor:
    """Replaces what looks like a secret by `[redacted]`; a text without any comes back as it is.

    `values` are secrets whatever they look like.
    """

    def __init__(self, values: frozenset[str] = frozenset()) -> None:
        forms = {form for v in values for form in (v, json.dumps(v)[1:-1], json.dumps(json.dumps(v))[3:-3])}
        self._own = sorted(forms, key=len, reverse=True)
        any_of = "|".join(map(re.escape, self._own))
        self._values = re.compile(rf"(?:{_filled('<BEGIN>')}|(?<!\w))(?:{any_of})(?!\w)")
        # a run says the same texts again and again: as a reply, as a message, as what was run
        self._cached = functools.lru_cache(maxsize=512)(self._redacted)

    def __call__(self, text: str) -> str:
        return self._cached(text) if len(text) <= _KEPT else self._redacted(text)

    def _redacted(self, text: str) -> str:
        if any(own in text for own in self._own):
            text = self._values.sub(REDACTED, text)
        parts, done = list[str](), 0
        for begin, end in sorted(_secrets(text)):  # they may overlap
            if begin >= done:
                parts += [text[done:begin], REDACTED]
            done = max(done, end)
        return "".join([*parts, text[done:]]) if parts else text

    def value(self, value: Any, name: str = "") -> Any:
        """Return a JSON value with every text in it redacted, and with any secret in a field named for one."""
        if isinstance(value, str):
            if name and _names_a_secret(name) and _holds_secret(name, value):
                return REDACTED
            return self(str(value)) if len(value) >= _LEAST else str(value)
        if isinstance(value, dict):
            return {self(key): self.value(inner, key) for key, inner in cast("dict[str, Any]", value).items()}
        if isinstance(value, (list, tuple)):
            return [self.value(item) for item in cast("list[Any]", value)]
        return value


def redactor(environ: Mapping[str, str]) -> Redactor:
    """Return the redactor that also knows the secrets of an environment.

    Those are the values of variables whose name has a whole word such as KEY, TOKEN, SECRET or PASSWORD
    (KEYBOARD_LAYOUT has none): 12 characters or more, no path and no common word; they are found as whole words.
    """
    return _made(frozenset([v for k, v in environ.items() if len(v) >= _SHORTEST and _is_named(k, v)]) | _REMEMBERED)


def remember(key: object) -> None:
    """Make a key that was given to a model in Python a secret of this process, like one of the environment.

    A key that could be a word is none (`EMPTY`, `no-key-needed`).
    """
    if isinstance(key, str) and len(key) >= _SHORTEST and _is_named("KEY", key):
        _REMEMBERED.add(key)


def redact(text: str) -> str:
    """Return a text without secrets, those of this process's environment as it is now included."""
    return redactor(os.environ)(text)


_made = functools.lru_cache(maxsize=8)(Redactor)


@functools.lru_cache(maxsize=1024)
def _is_named(name: str, value: str) -> bool:
    """Say whether an environment variable holds a secret."""
    known = _data()["environment"]
    words = re.split(r"[^A-Z0-9]+", name.upper())
    if (words[-1] in known["about"].split() and "WEBHOOK" not in words) or name.upper() in ("PWD", "OLDPWD"):
        return False
    if not any(w in known["words"].split() or w.endswith(tuple(known["endings"].split())) for w in words):
        return False
    is_word = len(value) < _LONGEST_WORD and re.fullmatch(known["harmless"], value)
    return not is_word and not re.fullmatch(known["path"], value)


@functools.lru_cache(maxsize=4096)
def _names_a_secret(name: str) -> bool:
    """Say whether a field of that name is one for secrets."""
    return any(_holds_secret(name, value) for value in _PROBES)


def _holds_secret(name: str, value: str) -> bool:
    """Say whether a field of that name holds a secret as its value."""
    squeezed = re.sub(r"[\s\"'`]+", ".", value[:4000])
    return any(end > len(name) + 4 for _, end in _secrets(f'"{name}": "{squeezed}"'))


def _secrets(text: str) -> Iterator[tuple[int, int]]:
    """Yield the places of the secrets in a text."""
    low = text.lower()
    if len(low) != len(text):  # a letter whose lower case is two
        low = re.sub("[A-Z]", lambda letter: letter[0].lower(), text)
    for mark, kind in _marks():
        where = low if kind.named else text
        at = where.find(mark)
        while at >= 0:
            found, end = kind.pattern.match(text, at - kind.back), at + 1
            if found is not None and _is_secret(found, kind.judge):
                begin, end = found.span(found.lastgroup or 0)
                yield begin, end
            at = where.find(mark, end)
    if "PRIVATE KEY" in text:
        yield from (key.span() for key in _value("pem").finditer(text) if "PRIVATE KEY" in key[0])


def _is_secret(found: re.Match[str], judge: str) -> bool:
    """Say whether a match of a pattern is a secret, by the rule of its group."""
    group = found.lastgroup
    if group is None or group == "whole":
        return True
    value = found[group]
    if group == "basic":
        try:
            return ":" in base64.b64decode(value, validate=True).decode("ascii")
        except ValueError:
            return False
    if group == "cookie":
        values = re.findall(r"[=:]\s*\\*[\"']?([^;\s\"',]+)", value)
        return any(_is_mixed(v, 8) and not _value("blank").match(v) for v in values)
    if _value("blank").match(value):
        return False
    digits, variable = len(re.findall(r"\d", value)), _value("variable").match(value)
    if group == "any":
        return not variable or (digits > 1 and "/" not in value)
    if group == "bearer":
        return digits > 0 or _is_mixed(value, 20)
    if group == "quoted" and judge != "token" and len(value) >= (6 if judge == "password" else 16):
        return not variable or digits > 1
    if group == "bare" and (variable or _value("attribute").match(value)) and (digits < 4 or "/" in value):
        return False  # code says such things all the time
    if judge != "token":
        return _is_mixed(value, 6 if judge == "password" else 8)
    letters = re.findall(r"[^\W\d_]", value)
    mixed = digits > 1 and len(letters) > 3
    return len(value) >= 12 if mixed else len(value) >= 16 and not _value("words").match(re.sub(r"\d", "", value))


def _is_mixed(value: str, least: int) -> bool:
    """Say whether a value is neither a word nor a number."""
    if len(value) < least or not re.search(r"[^\W\d_]", value):
        return False
    return re.search(r"\d", value) is not None or (len(value) >= 8 and not _value("words").match(value))
