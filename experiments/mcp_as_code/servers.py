"""The servers of this experiment, and the first 10, 40 or 120 of their tools.

`npm install --prefix experiments/mcp_as_code` installs them.  Only the filesystem server is ever called; GitHub's and
GitLab's are started, list their tools, and are ended.
"""

from __future__ import annotations

import functools
import sys
from pathlib import Path

from rlm_loop.tools import McpTools, Tool

HERE = Path(__file__).resolve().parent
PROGRAMS = HERE / "node_modules" / ".bin"
SIZES = (10, 40, 120)
#: Tools of the filesystem server that come after its ten: one is deprecated, no question needs the others.
LATER = ("read_file", "read_media_file", "create_directory", "move_file")


@functools.cache
def tools() -> tuple[Tool, ...]:
    """All tools: 14 of the filesystem server, 26 of GitHub's, and GitLab's.  Raises `McpError` without the servers."""
    filesystem = McpTools([sys.executable, str(HERE / "serve.py"), str(PROGRAMS / "mcp-server-filesystem"), "."])
    github = McpTools([str(PROGRAMS / "mcp-server-github")], prefix="github_")
    nowhere = {"GITLAB_PERSONAL_ACCESS_TOKEN": "none", "GITLAB_API_URL": "http://127.0.0.1:9/api/v4"}
    gitlab = McpTools([str(PROGRAMS / "mcp-gitlab")], prefix="gitlab_", env=nowhere)
    first = sorted(filesystem, key=lambda tool: tool.name in LATER)
    return (*first, *github, *gitlab)


def first(count: int) -> tuple[Tool, ...]:
    """The first `count` tools; a larger set holds the smaller one.  Raises `ValueError` where there are fewer."""
    found = tools()[:count]
    if len(found) < count:
        raise ValueError(f"the servers have {len(found)} tools, not {count}")
    return found
