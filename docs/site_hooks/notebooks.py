"""Shows the notebooks as they are committed, outputs included; nothing is executed here."""

from __future__ import annotations

import warnings
from pathlib import Path

import nbformat
from jinja2 import DictLoader
from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files
from nbconvert import MarkdownExporter

NOTEBOOKS = Path(__file__).parents[2] / "notebooks"
#: Pictures get a text, and raw HTML (tables, outcomes) a box of its own that scrolls.
_TEMPLATE = """{%- extends 'markdown/index.md.j2' -%}
{% block data_png %}![Figure made by the cell above]({{ output.metadata.filenames['image/png'] | path2url }})
{% endblock data_png %}
{% block data_svg %}![Figure made by the cell above]({{ output.metadata.filenames['image/svg+xml'] | path2url }})
{% endblock data_svg %}
{% block data_html scoped %}
<div class="cell-output">
{{ output.data['text/html'] | replace('\n\n', '\n') }}
</div>
{% endblock data_html %}
"""


def title(notebook: nbformat.NotebookNode, otherwise: str) -> str:
    """The first heading: a notebook opens with its question."""
    lines = [line for cell in notebook.cells if cell.cell_type == "markdown" for line in cell.source.splitlines()]
    return next((line.lstrip("# ").strip() for line in lines if line.startswith("#")), otherwise)


def converted(path: Path) -> tuple[str, str, dict[str, bytes]]:
    """Title, Markdown, and the pictures by the names that the text uses."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of older notebooks without cell ids
        notebook = nbformat.read(path, as_version=4)
    exporter = MarkdownExporter(
        template_file="rlm_loop.md.j2", extra_loaders=[DictLoader({"rlm_loop.md.j2": _TEMPLATE})]
    )
    resources = {"unique_key": path.stem, "output_files_dir": f"{path.stem}_files"}
    text, made = exporter.from_notebook_node(notebook, resources=resources)
    return title(notebook, path.stem), text, made.get("outputs", {})


def on_files(files: Files, config: MkDocsConfig) -> Files:
    listed: list[dict[str, str]] = []
    for path in sorted(NOTEBOOKS.glob("*.ipynb")):
        heading, text, pictures = converted(path)
        files.append(File.generated(config, f"notebooks/{path.stem}.md", content=text))
        for name, data in pictures.items():
            files.append(File.generated(config, f"notebooks/{name}", content=data))
        listed.append({heading: f"notebooks/{path.stem}.md"})
    next(entry["Reference"] for entry in config.nav or [] if "Reference" in entry).append({"Notebooks": listed})
    return files
