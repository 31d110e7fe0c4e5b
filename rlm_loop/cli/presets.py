"""`rlm-loop presets`: what other frameworks add to a prompt, ready to be added to a run."""

from __future__ import annotations

from typing import Annotated

from typer import Option

from rlm_loop.cli.experiments import show_table
from rlm_loop.cli.setup import Markdown


def presets(
    tokens: Annotated[bool, Option("--tokens", help="Count tokens too; loads the local model.")] = False,
    markdown: Markdown = False,
) -> None:
    """List the presets of injectors: what each adds, when, and from which package its bytes are (`run --preset`)."""
    from rlm_loop.report import preset_table

    if not tokens:
        show_table(preset_table(), markdown=markdown)
        return
    from rlm_loop.models import LocalModel

    show_table(preset_table(LocalModel().count), markdown=markdown)
