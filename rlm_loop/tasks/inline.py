"""A task's files as text, for strategies that have no tools to open them."""

from __future__ import annotations

from collections.abc import Mapping

CAP = 6000  # characters of file text, about 2,500 tokens of a table


def inline_text(files: Mapping[str, str], cap: int = CAP) -> str:
    """The files' text, each with an equal share of `cap`, cut at the end of a line; what is left out is said."""
    shown: list[str] = []
    for name, text in files.items():
        share = cap // len(files)
        kept = text if len(text) <= share else text[: text.rfind("\n", 0, share) + 1] or text[:share]
        left = text.count("\n") - kept.count("\n")
        more = f"({left} more rows are not shown)\n" if left else "(the rest is not shown)\n" if kept != text else ""
        shown.append(f"{name}:\n{kept}{more}")
    return "\n".join(shown)
