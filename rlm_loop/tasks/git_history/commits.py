"""Past commits of a repository: what each changed, which of its files are tests, and what a task of it says."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import PurePosixPath
from typing import Literal

from rlm_loop.tasks.clones import Clone

#: Messages of commits that mend something.
FIX = (
    r"(?i)\b(fix(e[sd]|ing)?|bug(s|fix(es)?)?|regress\w*|crash\w*|fail(s|ed|ing|ures?)?|wrong\w*|incorrect\w*|broken)\b"
)
_TEST_FOLDERS = frozenset({"test", "tests", "testing"})
_TEST_FILE = re.compile(r"(test_.*|.*_tests?|tests?)\.py")


@dataclass(frozen=True)
class Commit:
    """A commit and its first parent (empty for one without): `subject` and `body` are its message."""

    sha: str
    parent: str
    date: str
    subject: str
    body: str
    merge: bool = False


def commits(
    clone: Clone,
    *,
    rev: str = "HEAD",
    since: str | None = None,
    paths: Sequence[str] = (),
    match: str | None = FIX,
    merges: bool = False,
) -> Iterator[Commit]:
    """The commits reachable from `rev`, newest first, whose message matches.

    `since` is a date as git reads it ("2024-01-01", "6 months ago"); `paths` keeps commits that touch one of these.
    Merge commits are left out, as what they merge is looked at commit by commit; with `merges` the first-parent
    line is followed instead, and a merge is one change against it (for histories where each merge is a fix).
    """
    words = ["rev-list", "--encoding=UTF-8", "--format=%H%x00%P%x00%cI%x00%s%x00%b%x01"]
    words += ["--first-parent"] if merges else ["--no-merges", "--full-history"]
    words += [f"--since={since}"] if since else []
    listed = clone.git("--literal-pathspecs", *words, "--end-of-options", rev, "--", *paths)
    wanted = re.compile(match) if match else None
    for record in listed.split("\x01"):
        fields = record.split("\0")
        if len(fields) != 5:
            continue  # what follows the last record
        parents = fields[1].split()
        found = Commit(
            fields[0].rpartition("\n")[2],  # rev-list puts a line `commit SHA` before each record
            parents[0] if parents else "",
            fields[2],
            fields[3],
            fields[4].strip(),
            len(parents) > 1,
        )
        if wanted is None or wanted.search(f"{found.subject}\n{found.body}"):
            yield found


def is_test(path: str) -> bool:
    """The path belongs to the tests: by its folder, or by its name."""
    parts = PurePosixPath(path)
    return (
        bool(_TEST_FOLDERS & set(parts.parts[:-1]))
        or bool(_TEST_FILE.fullmatch(parts.name))
        or (parts.name == "conftest.py")
    )


def is_test_module(path: str) -> bool:
    """pytest finds tests in the file by its name alone."""
    return bool(re.fullmatch(r"(test_.*|.*_test)\.py|tests\.py", PurePosixPath(path).name))


def patch(clone: Clone, commit: Commit, paths: Sequence[str]) -> str:
    """The unified diff of these paths, for `git apply`.  Raises `UnicodeDecodeError` where it is no UTF-8 text."""
    if not paths:
        return ""
    how = ["-p", "--binary", "--full-index", "--no-renames", "--no-ext-diff", "--no-textconv", "--no-color"]
    words = ["--literal-pathspecs", "diff-tree", *how, commit.parent, commit.sha, "--", *paths]
    return clone.raw(*words).decode("utf-8")


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
