"""Where in a repository to look: files ranked for an issue's text, and a file tree of bounded size.

    >>> LeanAgent(injectors=[Localise(files=10)])  # doctest: +SKIP

Both are said once, after the question, in every dialect; the ledger has them as `scaffold:file_list` and
`scaffold:file_tree`, so that with and without is an ablation like any other.
"""

from __future__ import annotations

from rlm_loop.agents.localise.brief import Localise, LocaliseError, Ranked, rank_files, words
from rlm_loop.agents.localise.listing import file_tree

__all__ = ["Localise", "LocaliseError", "Ranked", "file_tree", "rank_files", "words"]
