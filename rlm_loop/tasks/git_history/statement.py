"""What a task of the history says: the message of the commit, or the text of the issue that it names."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Literal

from rlm_loop.tasks.git_history.commits import Commit

Statement = Literal["message", "subject"] | Callable[[Commit], str]
#: The text of an issue by its number, as a mapping or a function.
Issues = Mapping[int, str] | Callable[[int], str | None]

_TRAILER = re.compile(
    r"(?i)^(signed-off-by|co-authored-by|reviewed-by|acked-by|tested-by|change-id|reviewed-on|cherry-picked-from|"
    r"git-svn-id|differential revision|pull request resolved)\b.*$|^\(cherry picked from commit [0-9a-f]+\)$",
    re.MULTILINE,
)
_NUMBER = re.compile(r"(?<![\w/])(?:#|gh-|GH-)(\d+)\b")


def statement_of(commit: Commit, how: Statement = "message", issues: Issues | None = None) -> str:
    """The problem statement of a fix.

    "message" is subject and body without trailers, "subject" the first line alone; a function makes it from the
    commit.  Where `issues` knows an issue that the message names (`#12`), its text is the statement: it says what was
    seen, where a message often says what was done.
    """
    if issues is not None:
        known = issues.get if isinstance(issues, Mapping) else issues
        texts = [text.strip() for number in issue_numbers(commit) if (text := known(number)) and text.strip()]
        if texts:
            return "\n\n".join(texts)
    if callable(how):
        return how(commit)
    if how == "subject":
        return commit.subject
    if how != "message":
        raise ValueError(f"statement is 'message', 'subject' or a function of the commit, not {how!r}")
    body = re.sub(r"\n{3,}", "\n\n", _TRAILER.sub("", commit.body)).strip()
    return f"{commit.subject}\n\n{body}".strip()


def issue_numbers(commit: Commit) -> list[int]:
    """The numbers of issues that a message names, in order, each once."""
    return list(dict.fromkeys(int(n) for n in _NUMBER.findall(f"{commit.subject}\n{commit.body}")))
