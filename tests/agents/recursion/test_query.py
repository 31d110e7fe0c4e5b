"""`llm_query` and `llm_query_batched`, called as cells call them, on models that are functions of the prompt."""

from __future__ import annotations

import threading
from pathlib import Path
from typing import Any

import pytest
from made_trees import Answering, Root, outcome, upper

from rlm_loop import Budget, LeanAgent, ReActAgent, ToolLoopAgent
from rlm_loop.accounting import BudgetSpent, UnknownPrice
from rlm_loop.agents import SubCalls, outcome_of
from rlm_loop.agents.subcalls import DepthExceeded, Meter, SubCallError
from rlm_loop.messages import Prompt, Reply
from rlm_loop.models import ModelError, ScriptedModel
from rlm_loop.outcome import Outcome, Stop
from rlm_loop.tasks import Score, Task
from rlm_loop.tools import ToolGateway
from rlm_loop.traces import read
from tests.agents.replies import LOCAL, code, react, written


def says(reply: Any) -> Answering:
    """A model that says this, or raises it."""
    return Answering(lambda _: reply)


def fails_for(bad: str) -> Answering:
    return Answering(lambda text: ModelError("no route") if bad in text else text.upper())


class TestOne:
    def test_a_context_follows_the_prompt_whole(self) -> None:
        seen: list[str] = []
        root = Root(Answering(lambda text: seen.append(text) or "ok"))
        root.query("count", context="x" * 100_000)
        root.query("count", context=["a", {"b": 1}])
        assert seen == ["count\n\n" + "x" * 100_000, 'count\n\n["a", {"b": 1}]']

    def test_reasoning_is_no_part_of_what_is_returned(self) -> None:
        assert Root(says("<think>41?</think>\n\n42")).query("hello") == "42"

    def test_max_tokens_is_that_calls_own(self) -> None:
        root = Root(says("abcdefgh" * 10))
        assert root.query("hello", max_tokens=2) == "abcdefgh"  # as asked for: a token is four characters here
        assert root.metered.max_tokens is None
        assert len(root.query("hello")) == 80

    @pytest.mark.parametrize(
        ("reply", "message"),
        [
            (ModelError("no route"), "no route"),
            (ValueError("odd"), "ValueError: odd"),
            (Reply("half of", finish_reason="length"), "cut off after 2 tokens.*half of"),
            (Reply("", finish_reason="content_filter"), "content filter"),
            ("  \n", "empty"),
            ("So it is 41.</think>", "empty"),
        ],
    )
    def test_what_is_no_answer_is_raised_and_never_returned(self, reply: Any, message: str) -> None:
        root = Root(says(reply))
        with pytest.raises(SubCallError, match=message):
            root.query("hello")
        assert root.of("subcall_end")[0]["ok"] is False

    def test_a_reply_cut_by_the_budget_is_no_answer_but_is_paid_for(self) -> None:
        root = Root(says("abcd" * 50), budget=Budget(output_tokens=10))
        with pytest.raises(SubCallError, match="cut off after 10 tokens"):
            root.query("hello")
        assert root.account.spent.output_tokens == 10

    def test_failed_calls_count_as_calls(self) -> None:
        root = Root(fails_for("x"), budget=Budget(calls=3))
        for error in (*[SubCallError] * 3, BudgetSpent):
            with pytest.raises(error):
                root.query("x")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"prompt": "x", "max_tokens": 0}, "max_tokens is a number of tokens, 1 or more"),
        ({"prompt": "x", "model": "no-such-model"}, "no model 'no-such-model' may be asked here"),
        ({"prompts": "abc"}, "valid array, not 'abc'"),
        ({"prompts": ["a"], "contexts": []}, "1 prompts and 0 contexts"),
    ],
)
def test_bad_input_is_one_line_and_asks_nobody(arguments: dict[str, Any], message: str) -> None:
    root = Root()
    name = "llm_query_batched" if "prompts" in arguments else "llm_query"
    result = ToolGateway([root.query, root.batched]).call(name, arguments)
    assert (result.error, message in result.text) == ("invalid_arguments", True), result.text
    assert ("\n" in result.text, root.ledger.calls) == (False, [])


class TestBatch:
    def test_order_is_kept_and_results_are_strings(self) -> None:
        first = threading.Event()

        def answer(text: str) -> str:
            if text == "0":
                first.wait(5)  # the first prompt is answered last
            elif text == "9":
                first.set()
            return f"<{text}>"

        root = Root(Answering(answer), concurrency=10)
        results = root.batched([str(i) for i in range(10)])
        assert [(r, r.ok, r.error) for r in results] == [(f"<{i}>", True, None) for i in range(10)]
        starts = {e["index"]: (e["node"], e["batch"]) for e in root.of("subcall_start")}
        assert starts == {i: (f"0.{i + 1}", "0.b1") for i in range(10)}

    def test_one_of_fifty_fails_and_nothing_else_is_lost(self) -> None:
        root = Root(fails_for("#37"))
        results = root.batched([f"p#{i}" for i in range(50)])
        assert [r.ok for r in results] == [i != 37 for i in range(50)]
        failed = results[37]
        assert (results[36], failed.error, repr(failed)) == ("P#36", "no route", "<failed: no route>")
        assert not failed
        with pytest.raises(Exception, match="no route"):
            str(failed)
        with pytest.raises(TypeError):
            ", ".join(results)
        assert root.ledger.usage.calls == 49

    def test_of_a_batch_larger_than_what_is_left_the_rest_fails(self) -> None:
        root = Root(budget=Budget(calls=10), concurrency=1)
        assert sum(r.ok for r in root.batched([str(i) for i in range(12)])) == root.ledger.usage.calls == 10
        with pytest.raises(BudgetSpent):
            root.batched(["x"])

    def test_what_tokens_do_not_cover_fails_and_what_was_paid_for_is_kept(self) -> None:
        root = Root(says("abcd" * 5), budget=Budget(output_tokens=40), concurrency=1)
        results = root.batched(["x"] * 20, max_tokens=10)
        assert (sum(r.ok for r in results), root.account.spent.output_tokens) == (8, 40)  # of 5 tokens each
        assert all("limit of 40 output tokens" in r.error for r in results if not r.ok)

    def test_prompts_without_a_wish_share_what_is_left(self) -> None:
        """The first one does not take everything, so that all get an answer, and at the same time."""
        barrier = threading.Barrier(4, timeout=20)

        def answer(_: str) -> str:
            barrier.wait()
            return "abcd" * 10

        root = Root(Answering(answer), budget=Budget(output_tokens=60), concurrency=4)
        assert all(r.ok for r in root.batched(["a", "b", "c", "d"]))

    def test_contexts_go_with_their_prompts_and_a_batch_of_none_asks_nobody(self) -> None:
        root = Root(budget=Budget(calls=2))
        assert root.batched(["a", "b"], ["x", "y"]) == ["A\n\nX", "B\n\nY"]
        assert (root.batched([]), len(root.kinds)) == ([], 2)

    @pytest.mark.parametrize("end", [KeyboardInterrupt, SystemExit])
    def test_an_interrupt_in_one_call_is_not_data_and_no_other_is_begun(self, end: type[BaseException]) -> None:
        asked: list[str] = []
        root = Root(Answering(lambda text: asked.append(text) or end()), concurrency=4)
        with pytest.raises(end):
            root.batched(["x"] * 1_000)
        for thread in [t for t in threading.enumerate() if t.name == "llm_query"]:
            thread.join(60)
        assert len(asked) <= 4

    def test_a_spent_budget_is_said_once_and_not_for_each_prompt(self) -> None:
        root = Root(says("abcd" * 50), concurrency=4, budget=Budget(output_tokens=10))
        with pytest.raises(BudgetSpent, match="10 output tokens"):
            root.batched(["x"] * 1_000)
        assert len(root.kinds) <= 20


class TestSubAgent:
    def test_beyond_the_limit_of_depth_is_an_error(self) -> None:
        root = Root(max_depth=0)
        for ask in (lambda: root.query("x"), lambda: root.batched(["x", "y"])):
            with pytest.raises(DepthExceeded, match="max_depth=0"):
                ask()
        assert (set(root.kinds), root.ledger.calls) == ({"denied"}, [])

    @pytest.mark.parametrize("stop", [Stop.STEPS, Stop.MALFORMED, Stop.BLOCKED, Stop.TOKENS])
    def test_one_that_does_not_answer_has_failed(self, stop: Stop) -> None:
        def sub_agent(prompt: str, context: Any, inner: Meter) -> Outcome:
            inner.complete(Prompt.ask(prompt))
            return outcome(inner, "half an answer", stop, "why")

        root = Root(max_depth=2, sub_agent=sub_agent)
        with pytest.raises(SubCallError, match=f"no answer \\({stop}: why\\); its last words: 'half an answer'"):
            root.query("q")
        assert root.of("subcall_end")[0]["stop"] == stop

    def test_a_narrower_budget_is_the_sub_calls_own_until_nothing_is_left_for_the_parent(self) -> None:
        def sub_agent(prompt: str, context: Any, inner: Meter) -> Outcome:
            for _ in range(9):
                try:
                    inner.complete(Prompt.ask(prompt))
                except BudgetSpent as spent:
                    return outcome(inner, None, Stop(spent.kind), spent.reason)
            return outcome(inner, "done")

        root = Root(max_depth=2, sub_agent=sub_agent, sub_budget=Budget(calls=4), budget=Budget(calls=10))
        for spent in (4, 8):
            with pytest.raises(SubCallError, match="calls: the limit of 4 calls"):
                root.query("q")
            assert root.ledger.usage.calls == spent
        with pytest.raises(BudgetSpent, match="10 calls"):  # what is left, not what was given at first
            root.query("q")
        assert root.ledger.usage.calls == 10


class TestModels:
    def test_each_model_has_its_own_price(self) -> None:
        small = Answering(upper, "small", price=(0.001, 0.01))
        root = Root(Answering(upper, "big", price=(1.0, 1.0)), sub_model=small, budget=Budget(cost=5.0))
        root.query("abcd")
        assert root.account.spent.cost == pytest.approx(8 * 0.001 + 1 * 0.01)

    @pytest.mark.parametrize("named", [{"model": ScriptedModel([])}, {"models": {"free": ScriptedModel([])}}])
    def test_under_a_cost_limit_a_model_without_a_price_is_refused_at_the_start(self, named: Any) -> None:
        model = ScriptedModel([code("final_answer = 1")], price=(1.0, 1.0))
        with pytest.raises(UnknownPrice):
            ToolLoopAgent(model=model, budget=Budget(cost=5), subcalls=SubCalls(**named)).run("q")
        assert model.prompts == []

    def test_a_cost_limit_of_sub_calls_needs_the_price_of_the_model_that_is_asked(self) -> None:
        with pytest.raises(SubCallError, match="price"):
            Root(says("x"), sub_budget=Budget(cost=5)).query("x")
        small = Answering(upper, "small", price=(0.001, 0.01))
        assert Root(says("x"), sub_model=small, sub_budget=Budget(cost=5)).query("x") == "X"


# -- as a model meets it: agents of every dialect, cells in a process of their own

IN_TURN = SubCalls(concurrency=1)


def run(cell: str, *replies: Any, trace: Path | None = None, **settings: Any) -> Any:
    model = ScriptedModel([code(cell), *replies])
    return ToolLoopAgent(model=model, **settings).run("?", context="c", trace=trace)


def test_answers_of_a_batch_are_strings_and_may_be_the_answer() -> None:
    cell = "rs = llm_query_batched(['a', 'b'])\nfinal_answer = [', '.join(rs), rs]"
    assert run(cell, "A", "B", subcalls=IN_TURN).answer == ["A, B", ["A", "B"]]


@pytest.mark.parametrize(
    ("asks", "error", "settings", "shown"),
    [
        ("llm_query('x')", "SubCallError", {}, "no route"),
        ("str(llm_query_batched(['x'])[0])", "SubCallError", {}, "no route"),
        ("llm_query('x')", "NameError", {"max_depth": 0}, "llm_query"),
    ],
)
@pytest.mark.parametrize("repl", ["subprocess", "restricted"])
def test_cells_can_catch_what_a_sub_call_raises(asks: str, error: str, settings: Any, shown: str, repl: str) -> None:
    if repl == "restricted":
        pytest.importorskip("RestrictedPython")
    cell = f"try:\n    {asks}\nexcept {error} as e:\n    final_answer = str(e)"
    assert shown in run(cell, ModelError("no route"), repl=repl, **settings).answer


def test_a_sub_agent_has_a_repl_and_a_context_of_its_own_and_not_the_roots_checks() -> None:
    cell = "x = 1\nfinal_answer = [llm_query('How long?', context=[1, 2, 3])]"
    inner = code("final_answer = [len(context), 'x' in globals()]")
    assert run(cell, inner, max_depth=2, answer_type=list[str]).answer == ["[3, False]"]


def test_a_cell_that_failed_may_ask_again_and_pays_again() -> None:
    ask = "a = llm_query('x')\n"
    outcome = run(f"{ask}1 / 0", "A", code(f"{ask}final_answer = a"), "A")
    assert (outcome.answer, outcome.usage.calls) == ("A", 4)


@pytest.mark.parametrize(
    ("agent", "ask", "last"),
    [
        (LeanAgent, written("llm_query_batched", prompts=["a", "b"]), written("final_answer", answer="done")),
        (ReActAgent, react("llm_query_batched", prompts=["a", "b"]), react("finish", answer="done")),
    ],
)
def test_every_dialect_has_the_same_tools(agent: Any, ask: str, last: str) -> None:
    model = ScriptedModel([ask, "A", ModelError("no route"), last], name=LOCAL)
    outcome = agent(model=model, subcalls=IN_TURN).run("?", context="c")
    assert (outcome.answer, outcome.turns[0].observations[0].text) == ("done", "['A', <failed: no route>]")
    made = [(c.node, c.depth, c.purpose) for c in outcome.ledger.calls]
    assert made == [("0", 0, "agent"), ("0.1", 1, "llm_query"), ("0", 0, "agent")]


@pytest.mark.parametrize("agent", [ToolLoopAgent, LeanAgent, ReActAgent])
def test_every_dialect_is_told_of_them_in_the_same_words_and_only_the_code_loop_unasked(agent: Any) -> None:
    task = Task("t", "?", lambda _: Score(False), context="c")
    asked, unasked = (
        "".join(m.text for m in agent(model=LOCAL, **depth).first_request(task).prompt.messages)
        for depth in ({"max_depth": 1}, {})
    )
    assert "Ask a fresh model, which sees only the prompt and the context." in asked
    assert "llm_query_batched" in asked
    assert ("llm_query" in unasked) is (agent is ToolLoopAgent)


def test_the_trace_holds_the_tree(tmp_path: Path) -> None:
    inner, file = code("final_answer = llm_query('deep') + '!'"), tmp_path / "t.jsonl"
    cell, settings = "final_answer = llm_query_batched(['p', 'q'])", SubCalls(depth=2, concurrency=1)
    outcome = run(cell, inner, "x", inner, "y", subcalls=settings, trace=file)
    assert sorted(outcome.answer) == ["x!", "y!"]
    record = read(file)
    starts = {e["node"]: e for e in record.of("subcall_start")}
    asked = {n: tuple(e[key] for key in ("parent", "kind", "depth", "turn", "batch")) for n, e in starts.items()}
    ended = {e["node"]: (e["ok"], e["usage"]["calls"], e["stop"]) for e in record.of("subcall_end")}
    assert {n: (record.texts[e["prompt_sha256"]], *asked[n], *ended[n]) for n, e in starts.items()} == {
        "0.1": ("p", "0", "agent", 1, 1, "0.b1", True, 2, "answered"),
        "0.2": ("q", "0", "agent", 1, 1, "0.b1", True, 2, "answered"),
        "0.1.1": ("deep", "0.1", "completion", 2, 1, None, True, 1, None),
        "0.2.1": ("deep", "0.2", "completion", 2, 1, None, True, 1, None),
    }
    assert sorted((e["node"], e["turn"]) for e in record.of("turn")) == [("0", 1), ("0.1", 1), ("0.2", 1)]
    assert all("node" in e for event in ("request", "reply", "turn", "run_end") for e in record.of(event))
    again = outcome_of(record)
    assert (again.ledger.rows, again.usage) == (outcome.ledger.rows, outcome.usage)
    assert [c.node for c in again.ledger.calls] == [c.node for c in outcome.ledger.calls]


def test_sub_calls_between_turns_do_not_make_the_trace_grow_faster(tmp_path: Path) -> None:
    first, *cells = [f"print(llm_query('x{i}'))" for i in range(6)]
    replies = [reply for cell in cells for reply in (code(cell), "A")]
    run(first, "A", *replies, code("final_answer = 1"), trace=tmp_path / "t.jsonl")
    root = [e for e in read(tmp_path / "t.jsonl").of("request") if e["node"] == "0"]
    assert all(e["base"] for e in root[1:])
    assert max(len(e["added"]) for e in root[1:]) == 2


def test_a_spent_budget_ends_the_cell_that_waits_for_threads() -> None:
    greedy = """
from concurrent.futures import ThreadPoolExecutor
def ask(i):
    while True:
        try:
            llm_query(str(i))
        except Exception:
            pass
with ThreadPoolExecutor(8) as pool:
    list(pool.map(ask, range(8)))
"""
    outcome = run(greedy, *["ok"] * 100, budget=Budget(calls=20))
    assert (outcome.stop, outcome.usage.calls) == ("calls", 20)


def test_answers_survive_a_restart_and_are_not_paid_for_again() -> None:
    cells = [code("import os; os._exit(3)"), code("final_answer = [[r.ok, r.error] for r in rs]")]
    outcome = run("rs = llm_query_batched(['a', 'b'])", "A", ModelError("no route"), *cells, subcalls=IN_TURN)
    assert (outcome.answer, outcome.usage.calls) == ([[True, None], [False, "no route"]], 4)
