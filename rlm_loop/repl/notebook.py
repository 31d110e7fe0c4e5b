"""A session's journal as a Jupyter notebook that runs without this package (nbformat 4.5, written by hand: it is JSON).

The format: https://nbformat.readthedocs.io/en/latest/format_description.html
"""

from __future__ import annotations

import ast
import base64
import hashlib
import json
import pickle
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from rlm_loop.repl.contexts.files import listing
from rlm_loop.repl.host.calls import HostCall
from rlm_loop.repl.host.incoming import decode
from rlm_loop.repl.journal import Cell, Journal, arguments
from rlm_loop.repl.worker import NotExact, SubAnswer, SubFailure, encode, load

_INLINE = 20_000  # characters of a literal that still belongs into a cell; more goes into a file

_HOST_TOOLS = """\
# Host functions of the session.  They are not called again: what they gave then was recorded, and is given again.
class ToolError(RuntimeError):
    pass


class SubCallError(ToolError):
    pass


class DepthExceeded(SubCallError):
    pass


class _Answer(str):
    ok, error = True, None


class _Failure:
    ok = False

    def __init__(self, error):
        self.error = error

    def __str__(self):
        raise SubCallError(self.error)

    def __repr__(self):
        return f"<failed: {{self.error}}>"

    def __bool__(self):
        return False


def _error(text):
    for kind in (SubCallError, DepthExceeded):
        before, found, after = text.partition(kind.__name__ + ": ")
        if found and before in ("", "ToolError: runtime: ", "ToolError: denied: "):
            return kind(after)
    return ToolError(text)


_recorded = {calls}


def _host_tool(_name):
    def tool(*args, **kwargs):
        left = [r for r in _recorded if r[0] == _name]
        same = [r for r in left if repr((r[1], r[2])) == repr((list(args), kwargs))]
        if not left:
            raise ToolError(f"no recorded result of {{_name}} is left")
        call = (same or left)[0]
        _recorded.remove(call)
        if call[3] == "value":
            return call[4]
        if call[3] == "batch":
            return [_Answer(text) if ok else _Failure(text) for ok, text in call[4]]
        raise _error(call[4])

    return tool


{stand_ins}
"""


def write_notebook(
    path: Path, journal: Journal, setup: str, setup_calls: Iterable[HostCall], files: Mapping[str, str | bytes]
) -> Path:
    """Write the notebook, and beside it a folder with what is too large for a cell."""
    book = _Notebook(path)
    plan = journal.plan()
    cells = journal.cells
    lead = f"# A session of {len(cells)} cells\n\nHost functions give the results that were recorded then."
    if journal.forgotten:
        lead += f"  The first {journal.forgotten} cells are not kept."
    book.text(lead)
    if files:
        book.code("\n".join(["import pathlib", *(book.file(name, content) for name, content in files.items())]))
    for name, frame in plan.first.items():
        book.code(book.setting(name, frame))
    calls = [*setup_calls, *(call for cell in cells for call in cell.calls)]
    if calls:
        recorded = [_record(call) for call in calls if call.outcome is not None and "end" not in call.outcome]
        names = dict.fromkeys(c.name for c in calls if c.name.isidentifier())
        stand_ins = "\n".join(f"{n} = _host_tool({n!r})" for n in names)
        book.code(_HOST_TOOLS.format(calls=book.expression(recorded, "host_results"), stand_ins=stand_ins))
    if any("final_answer" in cell.code for cell in cells):
        book.code("import builtins\n\nbuiltins.final_answer = lambda answer: answer  # a call of it shows the answer")
    if setup:
        book.code(setup)
    in_plan = {id(e) for e in plan.events}
    for event in journal.history():
        if isinstance(event, Cell):
            book.cell(event)
        elif event.name and id(event) in in_plan:
            book.code(book.setting(event.name, event.frame))
    path.write_text(json.dumps(book.content(), ensure_ascii=False, indent=1) + "\n", "utf-8", "backslashreplace")
    return path


class _Notebook:
    def __init__(self, path: Path) -> None:
        self._path, self._cells = path, list[dict[str, Any]]()
        self._data, self._files = path.with_name(path.stem + "_data"), 0

    def content(self) -> dict[str, Any]:
        kernel = {"display_name": "Python 3", "language": "python", "name": "python3"}
        metadata = {"kernelspec": kernel, "language_info": {"name": "python"}}
        return {"cells": self._cells, "metadata": metadata, "nbformat": 4, "nbformat_minor": 5}

    def text(self, source: str) -> None:
        self._add("markdown", source)

    def code(self, source: str) -> None:
        self._add("code", source, execution_count=None, outputs=[])

    def cell(self, cell: Cell) -> None:
        """A cell that ran, with its output; one that was stopped or killed is shown, but would not run again."""
        if not cell.repeatable:
            self.text(f"Cell {cell.step} did not come to its end ({cell.error}):\n\n````python\n{cell.code}\n````")
            return
        shown = {"output_type": "stream", "name": "stdout", "text": cell.output.splitlines(True)}
        self._add("code", cell.code, execution_count=cell.step, outputs=[shown] if cell.output else [])
        if cell.error is not None:
            self._cells[-1]["metadata"] = {"tags": ["raises-exception"]}

    def _add(self, kind: str, source: str, **more: Any) -> None:
        name = hashlib.sha256(f"{len(self._cells)} {source}".encode("utf-8", "surrogatepass")).hexdigest()[:12]
        lines = source.splitlines(True)
        self._cells.append({"cell_type": kind, "id": name, "metadata": {}, "source": lines, **more})

    def file(self, name: str, content: str | bytes) -> str:
        """A line of code that writes a file of the session's working folder."""
        raw = content.encode("utf-8", "surrogatepass") if isinstance(content, str) else content
        make = f"pathlib.Path({name!r}).parent.mkdir(parents=True, exist_ok=True); "
        return f"{make}pathlib.Path({name!r}).write_bytes({self.expression(raw, Path(name).name)})"

    def assignment(self, name: str, value: Any) -> str:
        return f"{name} = {self.expression(value, name)}"

    def setting(self, name: str, frame: Mapping[str, Any]) -> str:
        """What the host bound; what lies on disk is read there again."""
        if frame["form"] != "disk":
            return self.assignment(name, load(dict(frame)))
        path, text = frame.get("source") or frame["path"], ".decode('utf-8', 'surrogateescape')"
        if frame["kind"] == "folder":
            names = repr(list(listing(path, frame["hidden"])))
            return f"import pathlib\n\n{name} = {{n: (pathlib.Path({path!r}) / n).read_bytes(){text} for n in {names}}}"
        text = text if frame["kind"] == "str" else ""
        return f"{name} = __import__('pathlib').Path({path!r}).read_bytes()[: {frame['size']}]{text}"

    def expression(self, value: Any, name: str) -> str:
        """Python that gives the value: a literal where that is exact and short, else out of a file."""
        text = _literal(value)
        if text is not None and len(text) <= _INLINE:
            return text
        self._data.mkdir(parents=True, exist_ok=True)
        self._files += 1
        file = self._data / f"{self._files}_{name}"
        raw = f"__import__('pathlib').Path({f'{self._data.name}/{file.name}'!r}).read_bytes()"
        if type(value) is str:
            file.write_bytes(value.encode("utf-8", "surrogatepass"))
            return f"{raw}.decode('utf-8', 'surrogatepass')"
        if type(value) is bytes:
            file.write_bytes(value)
            return raw
        file.write_bytes(pickle.dumps(value, protocol=4))
        return f"__import__('pickle').loads({raw})"


def _literal(value: Any) -> str | None:
    """Python text that gives an equal value, or `None` where only a file can."""
    try:
        form = json.dumps(encode(value, strict=True))
        if len(form) > _INLINE:
            return None
        text = repr(value)
        if json.dumps(encode(ast.literal_eval(text), strict=True)) == form:
            return text
    except (NotExact, ValueError, SyntaxError, TypeError, RecursionError, MemoryError):
        pass
    try:
        packed = base64.b64encode(pickle.dumps(value, protocol=4)).decode()
    except Exception:
        return repr(repr(value))
    return f'__import__("pickle").loads(__import__("base64").b64decode({packed!r}))'


def _record(call: HostCall) -> tuple[str, list[Any], dict[str, Any], str, Any]:
    args, kwargs = arguments(call)
    outcome = call.outcome or {}
    if "error" in outcome:
        return call.name, args, kwargs, "error", str(outcome["error"])
    try:
        value = decode(outcome.get("value"))
        if isinstance(value, list) and any(isinstance(v, (SubAnswer, SubFailure)) for v in value):
            batch = [(v.ok, v.error if isinstance(v, SubFailure) else str(v)) for v in value]
            return call.name, args, kwargs, "batch", batch
        return call.name, args, kwargs, "value", value
    except ValueError:
        return call.name, args, kwargs, "value", outcome.get("value")
