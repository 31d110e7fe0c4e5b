"""The page of a run: what is on it, what is left out, and that nothing of a trace can act on it."""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Any

import parsed_page
import pytest
from growth import parts
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st
from made_run import HOSTILE, PATCH, everything, long_run
from made_traces import Told
from parsed_page import Parsed

from rlm_loop import ToolLoopAgent
from rlm_loop.accounting.charges import calls_of
from rlm_loop.cli.main import main
from rlm_loop.models import ScriptedModel
from rlm_loop.report import run_page
from rlm_loop.report.run.marked import patch, plain_text, python_code
from rlm_loop.report.run.view import spent_of
from rlm_loop.report.templates import safe
from rlm_loop.traces import TraceError, read

sound = partial(parsed_page.sound, alone=True)


@pytest.fixture(scope="module")
def trace(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return everything(tmp_path_factory.mktemp("run") / "run.jsonl")


@pytest.fixture(scope="module")
def page(trace: Path) -> str:
    return run_page(trace)


#: Question, end, isolation, code, output, errors, a sub-call, a step of a sub-agent, files, a patch, what is left out.
SHOWN = parts(
    "Repair `numbers` in parsing.py|answered|sandbox|context.splitlines()|18250 5000|ValueError: invalid literal|"
    "Call of edit_file|the reply holds an unclosed block|an unclosed fence|How many amounts are in part 7?|"
    "Nothing is wrong here.|the provider said 503|notes/why.md|found.append(int(part.strip() or 0))|"
    "history: window, 6,200 -> 2,100 tokens, left out turns 1, 2|Reminder: answer with a number.|scaffold:nudge|"
    "the server hung up|70,000 characters left out|Before it was clipped for the model: 90,000 characters"
)


def test_what_is_on_the_page_is_text(page: str) -> None:
    text = sound(page).text
    assert [part for part in (*SHOWN, HOSTILE) if part not in text] == []
    assert "</script><script>" not in page.split("<script>", 1)[0]
    assert re.search("https?:", page) is None, "an address of the network is named"


@pytest.mark.parametrize(("name", "answer"), [("workspace", "fixed"), ("tool_loop_sub_agents", "the bottom")])
def test_an_answer_that_is_a_text_is_shown_without_quotes(name: str, answer: str) -> None:
    text = sound(run_page(Path(__file__).parents[1] / "golden" / f"{name}.jsonl")).text
    assert (answer in text, repr(answer) in text) == (True, False)


def test_a_cell_s_picture_is_on_the_page_and_a_large_one_is_not(tmp_path: Path) -> None:
    code = (
        "class Dots:\n    def __init__(self, size): self.size = size\n"
        "    def _repr_png_(self): return b'\\x89PNG\\r\\n' + bytes(self.size)\n"
        "display(Dots(9))\ndisplay(Dots(200_000))"
    )
    model = ScriptedModel([f"```python\n{code}\n```", "```python\nfinal_answer = 1\n```"])
    outcome = ToolLoopAgent(model=model, repl="plain").run("Draw a dot.", trace=tmp_path / "run.jsonl")
    assert [len(seen.displays) for seen in outcome.turns[0].observations] == [2]
    written = run_page(tmp_path / "run.jsonl")
    parsed_page.sound(written)
    assert written.count('src="data:image/png;base64,iVBORw0K') == 1


def test_sums_by_cause_are_those_of_the_ledger(tmp_path: Path) -> None:
    record = read(long_run(tmp_path / "long.jsonl", 30))
    calls, spent = list(calls_of(record)), list(spent_of(record))
    assert len(calls) == 30
    for call, one in zip(calls, spent, strict=True):
        sums = Counter[str]()
        for row in call.rows:
            sums[row.cause] += row.tokens
        assert (Counter(dict(one.causes)), sums.total()) == (sums, call.usage.input_tokens)


# -- files that are not as they should be


def lines_of(path: Path) -> list[str]:
    return path.read_text(encoding="utf-8").splitlines()


def text_of(path: Path, lines: list[str]) -> str:
    """The text of the page of a trace of these lines."""
    path.write_text("\n".join(lines), encoding="utf-8")
    return sound(run_page(path)).text


def up_to_the_last_reply(lines: list[str]) -> list[str]:
    return lines[: 1 + max(place for place, line in enumerate(lines) if '"event":"reply"' in line)]


KILLED: dict[str, tuple[Callable[[list[str]], list[str]], str]] = {
    "torn": (lambda lines: [*lines[:-3], lines[-3][:40]], "unfinished|context.splitlines()"),
    "a turn without its end": (up_to_the_last_reply, "no end of this turn|Answer(value='18250'"),
}


@pytest.mark.parametrize("name", KILLED)
def test_a_run_that_was_killed_is_shown_as_far_as_it_got(name: str, trace: Path, tmp_path: Path) -> None:
    cut, says = KILLED[name]
    text = text_of(tmp_path / "killed.jsonl", cut(lines_of(trace)))
    assert [part for part in parts(says) if part not in text] == []


DAMAGED: dict[str, Callable[[list[str]], list[str]]] = {
    "a bad line": lambda lines: [*lines[:5], lines[5][:50], *lines[6:]],
    "no beginning": lambda lines: lines[9:],
    "another version": lambda lines: [json.dumps({**json.loads(lines[0]), "schema": 99}), *lines[1:]],
    "an unknown action": lambda lines: [line.replace('"is":"RunCode"', '"is":"Dance"') for line in lines],
    "a date beyond all": lambda lines: [json.dumps({**json.loads(lines[0]), "at": 1e15}), *lines[1:]],
    "empty": lambda _: [],
    "no trace": lambda _: ["hello"],
    "other JSON": lambda _: ['{"a": 1}', "[1]"],
    "bytes": lambda _: ["\x00\xff"],
}


@pytest.mark.parametrize("name", DAMAGED)
def test_damage_is_told_in_one_line(name: str, trace: Path, tmp_path: Path) -> None:
    with pytest.raises(TraceError) as caught:
        text_of(tmp_path / "damaged.jsonl", DAMAGED[name](lines_of(trace)))
    assert "\n" not in str(caught.value)


JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-5, 10**12) | st.floats() | st.text(max_size=20) | st.just(HOSTILE),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner, max_size=3),
    max_leaves=4,
)
#: Which event, which of its objects, which name in it, and the new value (without one the name goes).
EDIT = st.tuples(st.integers(0, 999), st.integers(0, 9), st.integers(0, 9), st.tuples(JSON) | st.just(()))


@pytest.mark.slow
@settings(max_examples=40, suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow])
@example(edits=[(0, 0, 0, ()), (453, 0, 2, ())])  # the first step of a sub-agent, without its depth
@example(edits=[(338, 0, 2, ())])  # the second one
@given(edits=st.lists(EDIT, min_size=1, max_size=4))
def test_an_edited_trace_is_shown_or_refused(tmp_path: Path, trace: Path, edits: list[Any]) -> None:
    events: list[dict[str, Any]] = [json.loads(line) for line in lines_of(trace)]
    for which, inner, name, value in edits:
        event = events[which % len(events)]
        places = [p for p in (event, *event.values()) if isinstance(p, dict) and p]
        place = places[inner % len(places)] if places else event
        key = sorted(place)[name % len(place)] if place else "event"
        if value:
            place[key] = value[0]
        else:
            place.pop(key, None)
    with suppress(TraceError):
        text_of(tmp_path / "edited.jsonl", [json.dumps(e) for e in events])


@pytest.fixture
def several(tmp_path: Path) -> Path:
    for number in range(3):
        told = Told(tmp_path / "runs.jsonl", question=f"Question {number}?")
        told.turn(f"print({number})", str(number))
        told.end(number)
        told.trace.close()
    return tmp_path / "runs.jsonl"


@pytest.mark.parametrize(("run", "shown"), [(None, [0, 1, 2]), (0, [0]), (-1, [2]), (2, [2]), (-3, [0])])
def test_the_command_writes_all_runs_or_one(several: Path, tmp_path: Path, capsys: Any, run: Any, shown: Any) -> None:
    out, options = tmp_path / "new" / "run.html", [] if run is None else ["--run", str(run)]
    assert main(["trace", "show", str(several), "--html", str(out), *options]) == 0
    assert capsys.readouterr().out == f"{out}\n"
    found = sound(out.read_text(encoding="utf-8"))
    assert [n for n in range(3) if f"Question {n}?" in found.text] == shown
    assert run is not None or {"r0-run", "r1-run", "r2-run", "r0-t1", "r2-t1"} <= set(found.ids())


@pytest.mark.parametrize(
    ("arguments", "word"),
    [
        ("{0} --html {0}", "runs.jsonl"),
        ("{0} --html {0}/x.html", "runs.jsonl"),
        ("{0} --html out.html --run 9", "9"),
        ("nothing.jsonl --html out.html", "nothing.jsonl"),
    ],
)
def test_what_the_command_refuses(several: Path, capsys: Any, arguments: str, word: str) -> None:
    before = several.read_bytes()
    assert main(["trace", "show", *arguments.format(several).split()]) == 2
    assert word in " ".join(capsys.readouterr().err.split())
    assert several.read_bytes() == before


@given(text=st.text())
def test_any_text_is_escaped_and_none_is_lost(text: str) -> None:
    for made in (safe(text), plain_text(text, 10_000), python_code(text)):
        made.encode("utf-8")
        found = Parsed(f"<pre>{made}</pre>")
        assert (found.wrong, {tag for tag, _ in found.elements} - {"pre", "span"}) == ([], set())
        clean = re.sub("[\x00-\x08\x0b-\x1f\x7f-\x9f\ud800-\udfff\ufffe\uffff]", "\ufffd", text.replace("\r\n", "\n"))
        clean = re.sub("[\u202a-\u202e\u2066-\u2069]", lambda m: f"‹U+{ord(m[0]):04X}›", clean)
        assert found.text == clean


def test_code_and_patches_are_coloured() -> None:
    made = python_code("def f(x):\n    return 'a' + str(1)  # why\n") + patch(PATCH)
    spans = parts('hk">def|hf">f<|hs">&#x27;a|hn">1<|hc"># why|hb">str<|dr">-      |da">+      |dp">@@ -10|dh">--- a/')
    assert [span for span in spans if f'<span class="{span}' not in made] == []
