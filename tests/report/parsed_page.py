"""A page of HTML as a test wants it: its elements, its text, what is wrong with its nesting, and what could act."""

from __future__ import annotations

from html.parser import HTMLParser

VOID = {"meta", "input", "br", "img", "link", "hr"}
#: What the values that show themselves in a notebook are made of.
IN_NOTEBOOKS = {"div", "span", "pre", "b", "code", "details", "summary", "table", "tbody", "tr", "td"}


class Parsed(HTMLParser):
    """Every element of a page with its attributes, its text, and what is wrong with its nesting."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.elements: list[tuple[str, dict[str, str | None]]] = []
        self.wrong: list[str] = []
        self.text, self._open = "", list[str]()
        self.feed(page)
        self.close()
        self.wrong += [f"{tag} is never closed" for tag in self._open if tag not in ("html", "body")]

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements.append((tag, dict(attrs)))
        if tag not in VOID:
            self._open.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements.append((tag, dict(attrs)))

    def handle_endtag(self, tag: str) -> None:
        if not self._open or self._open.pop() != tag:
            self.wrong.append(f"</{tag}> closes something else")

    def handle_data(self, data: str) -> None:
        if not self._open or self._open[-1] not in ("style", "script"):
            self.text += data

    def all(self, tag: str) -> list[dict[str, str | None]]:
        return [attributes for name, attributes in self.elements if name == tag]

    def ids(self) -> list[str]:
        return [a["id"] or "" for _, a in self.elements if "id" in a]


def sound(page: str, *, alone: bool = False) -> Parsed:
    """A page that is well formed, asks for nothing, runs one script, and whose links on the page lead somewhere.

    One that is `alone` has no link to another page, and no picture.
    """
    found = Parsed(page)
    ids, tags = found.ids(), [tag for tag, _ in found.elements]
    assert (found.wrong, tags.count("script"), len(ids)) == ([], 1, len(set(ids)))
    assert not {"iframe", "link", "object", "embed", "base", *(["img"] if alone else [])} & set(tags)
    for tag, attributes in found.elements:
        assert not [name for name in attributes if name.startswith("on") or name in ("style", "srcdoc")]
        assert tag == "img" or "src" not in attributes
    for picture in found.all("img"):
        ours = str(picture["src"]).startswith("data:image/svg+xml;base64,")
        assert ours or str(picture["src"]).startswith("data:image/png;base64,")  # a cell's
        assert len(str(picture["alt"])) > (40 if ours else 10)
    links = {str(a["href"]) for a in found.all("a")}
    assert {link for link in links if alone or link.startswith("#")} <= {f"#{i}" for i in ids}
    (policy,) = [str(m["content"]) for m in found.all("meta") if m.get("http-equiv") == "Content-Security-Policy"]
    assert policy.startswith("default-src 'none'; style-src 'sha256-")
    assert ("unsafe" in policy, "http" in policy) == (False, False)
    return found


def text_in_notebook(html: str) -> str:
    """The text of a value in a notebook, made of our elements alone, with nothing that could run."""
    found = Parsed(html)
    assert (found.wrong, {tag for tag, _ in found.elements} - IN_NOTEBOOKS) == ([], set())
    assert {name for _, attributes in found.elements for name in attributes} <= {"style", "class", "open"}
    return found.text
