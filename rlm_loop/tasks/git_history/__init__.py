"""Past fixes of a user's own repository as tasks.

`from_git_history("path/to/repository")`: a commit that changed both source and tests becomes a task.  The agent
starts from its parent, is told its message, and is judged by its tests: those that failed before the commit and passed
after it (FAIL_TO_PASS), and those that passed both times (PASS_TO_PASS).  Which these are is found out by running them.
"""

from rlm_loop.tasks.git_history.commits import FIX, Commit, Issues, Statement, statement_of
from rlm_loop.tasks.git_history.mine import GitHistoryError, MinedHistory, from_git_history, mine

__all__ = [
    "FIX",
    "Commit",
    "GitHistoryError",
    "Issues",
    "MinedHistory",
    "Statement",
    "from_git_history",
    "mine",
    "statement_of",
]
