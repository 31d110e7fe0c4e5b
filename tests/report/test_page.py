"""The page of a run: what is on it, what is left out, and that nothing of a trace can act on it."""

from __future__ import annotations

import gzip
import json
import re
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st
from made_run import HOSTILE, PATCH, everything, long_run
from made_traces import Told
from parsed_page import Parsed

from rlm_loop.accounting.charges import calls_of
from rlm_loop.cli.main import main
from rlm_loop.models import ScriptedModel
from rlm_loop.report import run_page
from rlm_loop.report.run.marked import patch, plain_text, python_code
from rlm_loop.report.run.view import spent_of
from rlm_loop.report.templates import safe
from rlm_loop.traces import TraceError, read


def sound(page: str) -> Parsed:
    """A page that is well formed, asks for nothing, runs one script, and whose links lead somewhere."""
    found = Parsed(page)
    assert found.wrong == []
    assert len(found.all("script")) == 1
    assert not {"img", "iframe", "link", "object", "embed", "base"} & {tag for tag, _ in found.elements}
    for _, attributes in found.elements:
        assert not [name for name in attributes if name.startswith("on") or name in ("src", "style", "srcdoc")]
    ids = found.ids()
    assert len(ids) == len(set(ids))
    assert {str(a["href"]) for a in found.all("a")} <= {f"#{i}" for i in ids}
    return found


@pytest.fixture(scope="module")
def trace(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return everything(tmp_path_factory.mktemp("run") / "run.jsonl")


@pytest.fixture(scope="module")
def page(trace: Path) -> str:
    return run_page(trace)


@pytest.mark.parametrize(
    "said",
    [
        "Repair `numbers` in parsing.py",
        "answered",
        "sandbox",
        "context.splitlines()",  # code
        "18250 5000",  # output
        "ValueError: invalid literal",
        "Call of edit_file",
        "the reply holds an unclosed block",
        "an unclosed fence",
        "How many amounts are in part 7?",  # a sub-call
        "Nothing is wrong here.",  # a step of a sub-agent
        "the provider said 503",
        "notes/why.md",
        "found.append(int(part.strip() or 0))",  # the patch
        "history: window, 6,200 -> 2,100 tokens, left out turns 1, 2",
        "Reminder: answer with a number.",
        "scaffold:nudge",
        "the server hung up",
        "70,000 characters left out",
        "Before it was clipped for the model: 90,000 characters",
    ],
)
def test_what_is_on_the_page(page: str, said: str) -> None:
    assert said in sound(page).text


def test_what_a_model_wrote_is_text(page: str) -> None:
    found = sound(page)
    assert HOSTILE in found.text
    assert "</script><script>" not in page.split("<script>", 1)[0]


def test_the_policy_forbids_the_network_and_other_scripts(page: str) -> None:
    policy = next(m["content"] for m in Parsed(page).all("meta") if m.get("http-equiv") == "Content-Security-Policy")
    assert policy is not None
    assert policy.startswith("default-src 'none'")
    assert "unsafe" not in policy
    assert "http:" not in page.replace("http-equiv", "")
    assert "https:" not in page


def test_sums_by_cause_are_those_of_the_ledger(tmp_path: Path) -> None:
    record = read(long_run(tmp_path / "long.jsonl", 30))
    calls = list(calls_of(record))
    spent = list(spent_of(record))
    assert len(spent) == len(calls) == 30
    for call, one in zip(calls, spent, strict=True):
        sums: dict[str, int] = {}
        for row in call.rows:
            sums[row.cause] = sums.get(row.cause, 0) + row.tokens
        assert dict(one.causes) == sums
        assert sum(sums.values()) == call.usage.input_tokens


# -- files that are not as they should be


def lines_of(path: Path) -> list[str]:
    return path.read_text(encoding="utf-8").splitlines()


def written(path: Path, lines: list[str]) -> Path:
    path.write_text("\n".join(lines), encoding="utf-8")
    return path


def test_a_torn_line_is_named(trace: Path, tmp_path: Path) -> None:
    lines = lines_of(trace)
    page = run_page(written(tmp_path / "torn.jsonl", [*lines[:-3], lines[-3][:40]]))
    text = sound(page).text
    assert "torn" in text
    assert "unfinished" in text
    assert "context.splitlines()" in text


def test_a_reply_whose_turn_never_ended_is_shown(tmp_path: Path) -> None:
    told = Told(tmp_path / "run.jsonl")
    told.turn("print(1)", "1")
    told.turn("print('the last one')", "2")
    told.trace.close()
    lines = [line for line in lines_of(tmp_path / "run.jsonl") if '"event":"turn"' not in line or '"turn":1' in line]
    text = sound(run_page(written(tmp_path / "cut.jsonl", lines))).text
    assert "no end of this turn" in text
    assert "the last one" in text


def test_a_damaged_line_hides_nothing_else(trace: Path, tmp_path: Path) -> None:
    lines = lines_of(trace)
    lines[5] = lines[5][:50]
    text = sound(run_page(written(tmp_path / "bad.jsonl", lines))).text
    assert "left out: 6" in text
    assert "Nothing is wrong here." in text


def test_another_version_is_shown_as_far_as_it_goes(trace: Path, tmp_path: Path) -> None:
    lines = lines_of(trace)
    start = {**json.loads(lines[0]), "schema": 99}
    strange = {"event": "turn", "turn": 90, "node": "0", "depth": 0, "actions": [{"is": "Dance"}]}
    strange["observations"] = [{"text": ""}]
    text = sound(run_page(written(tmp_path / "new.jsonl", [json.dumps(start), *lines[1:], json.dumps(strange)]))).text
    assert "schema 99" in text
    assert '"is": "Dance"' in text
    assert "18250 5000" in text


def test_a_trace_without_its_beginning(trace: Path, tmp_path: Path) -> None:
    text = sound(run_page(written(tmp_path / "tail.jsonl", lines_of(trace)[9:]))).text
    assert "its beginning is missing" in text
    assert "Nothing is wrong here." in text


def test_a_compressed_file_that_is_cut_off(trace: Path, tmp_path: Path) -> None:
    packed = gzip.compress(trace.read_bytes())
    (tmp_path / "cut.jsonl.gz").write_bytes(packed[: len(packed) - 200])
    assert "cut off" in sound(run_page(tmp_path / "cut.jsonl.gz")).text


@pytest.mark.parametrize("text", ["", "\n\n", "hello\n", '{"a": 1}\n', "[1]\n", "\x00\xff"])
def test_a_file_that_is_no_trace(tmp_path: Path, text: str) -> None:
    (tmp_path / "x.jsonl").write_text(text, encoding="utf-8")
    with pytest.raises(TraceError, match=r"x\.jsonl"):
        run_page(tmp_path / "x.jsonl")
    with pytest.raises(TraceError, match=r"missing\.jsonl"):
        run_page(tmp_path / "missing.jsonl")


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
@given(edits=st.lists(EDIT, min_size=1, max_size=4))
def test_an_edited_trace_never_breaks_the_page(
    tmp_path: Path, trace: Path, edits: list[tuple[int, int, int, tuple[Any, ...]]]
) -> None:
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
    path = written(tmp_path / "edited.jsonl", [json.dumps(e) for e in events])
    sound(run_page(path))


# -- several runs


@pytest.fixture
def several(tmp_path: Path) -> Path:
    for number in range(3):
        told = Told(tmp_path / "runs.jsonl", question=f"Question {number}?")
        told.turn(f"print({number})", str(number))
        told.end(number)
        told.trace.close()
    return tmp_path / "runs.jsonl"


def test_a_file_of_several_runs_has_them_all(several: Path) -> None:
    found = sound(run_page(several))
    assert {"r0-run", "r1-run", "r2-run", "r0-t1", "r2-t1"} <= set(found.ids())
    assert all(f"Question {n}?" in found.text for n in range(3))


@pytest.mark.parametrize(("run", "question"), [(0, 0), (1, 1), (-1, 2), (2, 2), (-3, 0)])
def test_one_run_of_several(several: Path, run: int, question: int) -> None:
    text = sound(run_page(several, run=run)).text
    assert [n for n in range(3) if f"Question {n}?" in text] == [question]


def test_a_run_that_is_not_there(several: Path) -> None:
    with pytest.raises(TraceError, match="7"):
        run_page(several, run=7)


# -- texts


@given(text=st.text())
def test_any_text_is_escaped_and_none_is_lost(text: str) -> None:
    for made in (safe(text), plain_text(text, 10_000), python_code(text, 10_000)):
        made.encode("utf-8")
        found = Parsed(f"<pre>{made}</pre>")
        assert found.wrong == []
        assert {tag for tag, _ in found.elements} <= {"pre", "span"}
        clean = re.sub("[\x00-\x08\x0b-\x1f\x7f-\x9f\ud800-\udfff\ufffe\uffff]", "\ufffd", text.replace("\r\n", "\n"))
        clean = re.sub("[\u202a-\u202e\u2066-\u2069]", lambda m: f"‹U+{ord(m[0]):04X}›", clean)
        assert found.text == clean


@pytest.mark.parametrize(("size", "left"), [(100, 0), (300, 0), (301, 1), (5_000, 4_700)])
def test_a_long_text_is_clipped_with_a_note(size: int, left: int) -> None:
    shown = plain_text("a" * (size - 1) + "z", 300)
    assert (f"{left:,} characters left out" in shown) == bool(left)
    assert shown.startswith("aaa")
    assert shown.endswith("z")


def test_python_is_coloured() -> None:
    made = python_code("def f(x):\n    return 'a' + str(1)  # why\n", 1_000)
    for piece in (
        '<span class="hk">def',
        '<span class="hf">f<',
        '<span class="hs">&#x27;a&#x27;',
        '<span class="hn">1<',
        '<span class="hc"># why',
        '<span class="hb">str<',
    ):
        assert piece in made


def test_a_patch_is_coloured() -> None:
    made = patch(PATCH, 10_000)
    assert '<span class="dr">-        found.append(int(part))' in made
    assert '<span class="da">+        found.append' in made
    assert '<span class="dp">@@ -10,7' in made
    assert '<span class="dh">--- a/parsing.py' in made


# -- the command


def said(capsys: pytest.CaptureFixture[str], *arguments: str) -> tuple[int, str, str]:
    code = main(["trace", "show", *arguments], models=lambda name, **_: ScriptedModel([]))
    out, err = capsys.readouterr()
    return code, out, err


def test_the_command_writes_the_page(several: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out = tmp_path / "new" / "run.html"
    assert said(capsys, str(several), "--html", str(out))[:2] == (0, f"{out}\n")
    assert out.read_text(encoding="utf-8") == run_page(several)
    assert said(capsys, str(several), "--html", str(out), "--run", "1")[0] == 0
    assert out.read_text(encoding="utf-8") == run_page(several, run=1)
    assert "Question 2?" in said(capsys, str(several))[1]


@pytest.mark.parametrize(
    ("arguments", "word"),
    [
        (["{trace}", "--html", "{trace}"], "runs.jsonl"),
        (["{trace}", "--html", "{trace}/x.html"], "runs.jsonl"),
        (["{trace}", "--html", "out.html", "--run", "9"], "9"),
        (["nothing.jsonl", "--html", "out.html"], "nothing.jsonl"),
    ],
)
def test_what_the_command_refuses(
    several: Path, capsys: pytest.CaptureFixture[str], arguments: list[str], word: str
) -> None:
    before = several.read_bytes()
    code, _, err = said(capsys, *(a.format(trace=several) for a in arguments))
    assert code == 2
    assert word in " ".join(err.split())
    assert several.read_bytes() == before
