"""Whether Python source compiles.  It is compiled and never run."""

from __future__ import annotations

import threading
import warnings

from rlm_loop.tools.code.texts import character_set

_SHOWN = 200
_one_at_a_time = threading.Lock()  # the list of warning filters belongs to the whole process


def syntax_error(source: bytes, path: str) -> str:
    """One line of what is wrong with Python source, or nothing."""
    try:
        if character_set(source) is None:
            return "the coding line names no character set"
        with _one_at_a_time, warnings.catch_warnings():
            warnings.simplefilter("ignore")  # an odd escape is no error
            compile(source, path, "exec", dont_inherit=True)
    except SyntaxError as error:
        line = f": {error.text.strip()[:_SHOWN]}" if error.text and error.text.strip() else ""
        return f"line {error.lineno}: {error.msg}{line}"
    except (ValueError, RecursionError, MemoryError, OverflowError) as error:
        return f"{type(error).__name__}: {error}"
    return ""
