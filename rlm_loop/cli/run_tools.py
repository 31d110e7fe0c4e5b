"""The tools of `rlm-loop run --tools`: those of MCP servers, and the functions marked with `@tool` in a file."""

from __future__ import annotations

import contextlib
import importlib.util
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from rlm_loop.cli.setup import Misuse

if TYPE_CHECKING:
    from collections.abc import Generator, Sequence

    from rlm_loop.tools import Tool


@contextlib.contextmanager
def given_tools(sources: Sequence[str]) -> Generator[tuple[Tool, ...]]:
    """The tools of all sources, in order; servers are ended with the block.  Raises `Misuse`."""
    from rlm_loop.tools import McpError, mcp_tools

    found: list[Tool] = []
    with contextlib.ExitStack() as until:
        for source in sources:
            if source.endswith(".py") and (Path(source).exists() or len(source.split()) == 1):
                found += tools_in(Path(source))
                continue
            try:
                found += until.enter_context(mcp_tools(source))
            except (McpError, ImportError, ValueError) as error:
                raise Misuse(f"--tools {source}: {error}") from error
        yield tuple(found)


def tools_in(path: Path) -> list[Tool]:
    """The functions marked with `@tool` in a Python file, which is run.  Raises `Misuse`."""
    from rlm_loop.tools import Tool

    spec = importlib.util.spec_from_file_location(path.stem, path)
    if not path.is_file() or spec is None or spec.loader is None:
        raise Misuse(f"--tools {path}: there is no such file; a server is a command or a URL")
    module = importlib.util.module_from_spec(spec)
    sys.modules[path.stem], before = module, sys.modules.get(path.stem)
    sys.path.insert(0, str(path.resolve().parent))
    try:
        spec.loader.exec_module(module)
    except Exception as error:
        raise Misuse(f"--tools {path} cannot be run: {type(error).__name__}: {error}") from error
    finally:
        sys.path.pop(0)
        if before is not None:  # what the program itself has by that name
            sys.modules[path.stem] = before
    found = list({id(v): v for v in vars(module).values() if isinstance(v, Tool)}.values())
    if not found:
        raise Misuse(f"--tools {path}: no function in it is marked with @tool (from rlm_loop import tool)")
    return found
