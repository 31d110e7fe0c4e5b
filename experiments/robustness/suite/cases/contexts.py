"""Variables that come from outside: every size and every byte."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from experiments.robustness.suite.case import CellCase, CellStep


def _crosses(name: str, does: str, value: Callable[[], Any], check: str, output: str, seconds: float = 10) -> CellCase:
    return CellCase(
        name=f"context-{name}",
        theme="context from outside",
        does=does,
        must="it arrives exactly as it was",
        steps=(CellStep(f"print({check})", output=output),),
        given={"given": value},
        needs=frozenset(["set"]),
        seconds=seconds,
    )


_PATTERN = "0123456789abcdef\r\n\x00\t~"  # 21 characters, with what text mode would alter
_LARGE = 100_000_000


def _large() -> str:
    return (_PATTERN * (_LARGE // len(_PATTERN) + 1))[:_LARGE]


_ODD = "a\r\nb\rc\nd\x00e\ufefff\ud800g\U0001f600h\u2028i\x85j"

CASES = (
    _crosses(
        "crlf-nul-surrogate",
        "a text with every kind of line end, NUL and half a character",
        lambda: _ODD,
        "[ord(c) for c in given]",
        str([ord(c) for c in _ODD]),
    ),
    _crosses("empty", "an empty text", lambda: "", "repr(given)", "''"),
    _crosses(
        "braces",
        "a text full of braces and percent signs",
        lambda: "{x} %s {{}} {0!r} $y",
        "given",
        "{x} %s {{}} {0!r} $y",
    ),
    _crosses("quotes", "a text full of quotes and backslashes", lambda: "'''\"\"\"\\n\\", "given", "'''\"\"\"\\n\\"),
    _crosses(
        "nested",
        "a nested dict",
        lambda: {"a": [1, {"b": None}], "c": {"d": 2.5}},
        "given['a'][1], given['c']['d']",
        "{'b': None} 2.5",
    ),
    _crosses("keys", "a dict whose keys are no text", lambda: {1: "x", (2, 3): "y"}, "given[1], given[(2, 3)]", "x y"),
    _crosses("set", "a set", lambda: {3, 1, 2}, "sorted(given), isinstance(given, set)", "[1, 2, 3] True"),
    _crosses("bytes", "bytes of every value", lambda: bytes(range(256)), "list(given) == list(range(256))", "True"),
    _crosses(
        "100-mb",
        "a text of 100 MB",
        _large,
        "len(given), given[:21] == given[21:42], given.count(chr(13) + chr(10) + chr(0))",
        f"{_LARGE} True {_LARGE // len(_PATTERN)}",
        30,
    ),
    _crosses(
        "10-mb-emoji",
        "a text of 10 million characters, some beyond the basic plane",
        lambda: "abcd\U0001f600" * 2_000_000,
        "len(given), given.count(chr(0x1f600)), given[-1] == chr(0x1f600)",
        "10000000 2000000 True",
        20,
    ),
)
