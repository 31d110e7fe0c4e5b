"""Shows the README of each experiment: question, method, finding, with its figures."""

from __future__ import annotations

import re
from pathlib import Path

from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files
from mkdocs.structure.pages import Page

EXPERIMENTS = Path(__file__).parents[2] / "experiments"
#: A link of a page to what lies beside `docs/`: an experiment's page or picture, or a file that is no part of the site.
_OUTSIDE = re.compile(r"(!?)\[([^\]]*)\]\(\.\./([^)#]+)[^)]*\)")
_TARGET = re.compile(r"(!?)\[([^\]]*)\]\((?!https?:|#)([^)#]+)[^)]*\)")


def finding(readme: Path) -> tuple[str, str, dict[str, bytes]]:
    """Title, Markdown, and its pictures.  A link to what is no part of the site becomes its text."""
    pictures: dict[str, bytes] = {}

    def target(found: re.Match[str]) -> str:
        picture, text, where = found.groups()
        there = readme.parent / where
        if picture and there.is_file():
            pictures[f"{readme.parent.name}/{where}"] = there.read_bytes()
            return f"![{text}]({readme.parent.name}/{where})"
        other = (there / "README.md").resolve() if there.is_dir() else there.resolve()
        if other.name == "README.md" and other.is_file() and other.parent.parent == EXPERIMENTS.resolve():
            return f"[{text}]({other.parent.name}.md)"
        if picture:
            raise FileNotFoundError(f"{readme}: the picture {where} is not there")
        return text

    whole = readme.read_text(encoding="utf-8")
    title = next(line.lstrip("# ").strip() for line in whole.splitlines() if line.startswith("# "))
    return title, _TARGET.sub(target, whole), pictures


def on_files(files: Files, config: MkDocsConfig) -> Files:
    listed: list[dict[str, str]] = []
    for readme in sorted(EXPERIMENTS.glob("*/README.md")):
        title, text, pictures = finding(readme)
        name = f"findings/{readme.parent.name}.md"
        files.append(File.generated(config, name, content=text))
        for picture, data in pictures.items():
            files.append(File.generated(config, f"findings/{picture}", content=data))
        listed.append({title: name})
    next(entry["Reference"] for entry in config.nav or [] if "Reference" in entry).append({"Experiments": listed})
    return files


def on_page_markdown(markdown: str, page: Page, config: MkDocsConfig, files: Files) -> str:
    """Lead links of `docs/` that leave the folder to the site's pages; other files become their text."""

    def target(link: re.Match[str]) -> str:
        picture, text, where = link.groups()
        name = where.removeprefix("experiments/").removesuffix("README.md").rstrip("/")
        here = f"findings/{name}" if picture else f"findings/{name}.md"
        return f"{picture}[{text}]({here})" if files.get_file_from_path(here) else text

    return _OUTSIDE.sub(target, markdown) if not page.file.src_uri.startswith("findings/") else markdown
