"""The page of a comparison, and nothing of a model's that could act on it."""

from __future__ import annotations

import html.parser
import json
from pathlib import Path

import pytest

from rlm_loop.cli.main import main
from rlm_loop.formats import load_sources
from rlm_loop.report import compare_page

FILES = Path(__file__).parent / "files"


class Page(html.parser.HTMLParser):
    """The texts of a page by the id or class of what holds them, and all addresses that it names."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.ids: list[str] = []
        self.addresses: list[str] = []
        self.tags: list[str] = []
        self.text = ""
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        found = dict(attrs)
        self.tags.append(tag)
        self.ids += [found["id"] or ""] if "id" in found else []
        self.addresses += [found[name] or "" for name in ("href", "src") if name in found]

    def handle_data(self, data: str) -> None:
        self.text += data


def page_of(*paths: Path | str) -> Page:
    loaded = load_sources(*paths)
    return Page(compare_page(loaded.results.compare(), loaded.notes))


def test_a_page_holds_the_difference_and_every_task() -> None:
    page = page_of(FILES / "plain.eval", FILES / "tools.eval")
    assert "scripted/tools resolves 83.3 %, scripted/plain 33.3 %: +50.0 points" in page.text
    assert "3 where arms differ" in page.text
    assert "sum-3" in page.text
    links = [a[1:] for a in page.addresses if a.startswith("#")]
    assert all(a.startswith(("#", "data:image/svg+xml;base64,")) for a in page.addresses)
    assert set(links) <= set(page.ids)
    assert len(page.ids) == len(set(page.ids))
    assert page.tags.count("img") >= 1


def test_every_kind_of_results_has_its_page() -> None:
    lines = page_of(FILES / "lm_eval" / "small", FILES / "lm_eval" / "large")
    assert "doubles_gen" in lines.text
    assert "sort-lines, seed 0" in page_of(FILES / "harbor" / "small", FILES / "harbor" / "large").text


def test_what_a_model_wrote_stays_text(tmp_path: Path) -> None:
    evil = "</pre><script>alert(1)</script>"
    for name, right in (("a", 1), ("b", 0)):
        rows = [
            {"task": evil, "arm": f"{name}<i>", "resolved": right},
            {"task": "t", "arm": f"{name}<i>", "resolved": 1},
        ]
        (tmp_path / f"{name}.jsonl").write_text("\n".join(map(json.dumps, rows)), encoding="utf-8")
    page = page_of(tmp_path / "a.jsonl", tmp_path / "b.jsonl")
    assert page.tags.count("script") == 1
    assert "i" not in page.tags
    assert evil in page.text


def test_the_command_writes_it(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out = tmp_path / "new" / "page.html"
    assert main(["compare", str(FILES / "plain.eval"), str(FILES / "tools.eval"), "--html", str(out)]) == 0
    assert capsys.readouterr().out == f"{out}\n"
    assert out.read_text(encoding="utf-8").startswith("<!doctype html>")
