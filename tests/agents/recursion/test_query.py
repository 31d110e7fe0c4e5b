"""`llm_query` and `llm_query_batched`, called as cells call them, on models that are functions of the prompt."""

from __future__ import annotations

import threading
from typing import Any

import pytest
from made_trees import Answering, Root, outcome, tools_of, upper

from rlm_loop.accounting import Budget, BudgetSpent
from rlm_loop.agents.subcalls import DepthExceeded, Meter, SubCallError
from rlm_loop.messages import Prompt, Reply
from rlm_loop.models import ModelError
from rlm_loop.outcome import Outcome, Stop
from rlm_loop.tools import ToolGateway


def says(reply: Any) -> Answering:
    """A model that says this, or raises it."""
    return Answering(lambda _: reply)


def fails_for(bad: str) -> Answering:
    return Answering(lambda text: ModelError("no route") if bad in text else text.upper())


class TestOne:
    def test_it_is_one_plain_completion(self) -> None:
        root = Root()
        assert root.query("hello") == "HELLO"
        assert [(c.node, c.depth, c.purpose) for c in root.ledger.calls] == [("0.1", 1, "llm_query")]
        assert root.ledger.usage_of("0") == root.ledger.usage

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
        for error in (SubCallError, SubCallError, SubCallError, BudgetSpent):
            with pytest.raises(error):
                root.query("x")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"prompt": ""}, "the prompt of llm_query is empty"),
        ({"prompt": 5}, "'prompt': Input should be a valid string, not 5"),
        ({}, "missing 'prompt'"),
        ({"prompt": "x", "max_tokens": 0}, "max_tokens is a number of tokens, 1 or more"),
        ({"prompt": "x", "temperature": 1}, "unexpected 'temperature'"),
        ({"prompt": "x", "model": "no-such-model"}, "no model 'no-such-model' may be asked here"),
        ({"prompts": "abc"}, "valid array, not 'abc'"),
        ({"prompts": ["a", 5]}, "'prompts.1': Input should be a valid string"),
        ({"prompts": ["a", " "]}, "prompt 1 of llm_query_batched is empty"),
        ({"prompts": ["a"], "contexts": []}, "1 prompts and 0 contexts"),
    ],
)
def test_bad_input_is_one_line_and_asks_nobody(arguments: dict[str, Any], message: str) -> None:
    root = Root()
    name = "llm_query_batched" if "prompts" in arguments else "llm_query"
    result = ToolGateway([root.query, root.batched]).call(name, arguments)
    assert (result.error, message in result.message) == ("invalid_arguments", True), result.message
    assert "\n" not in result.message
    assert not root.ledger.calls


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
        assert results == [f"<{i}>" for i in range(10)]
        assert "".join(results) == "".join(str(r) for r in results)
        assert all(r.ok and r.error is None and type(str(r)) is str for r in results)
        starts = {e["index"]: (e["node"], e["batch"]) for e in root.of("subcall_start")}
        assert starts == {i: (f"0.{i + 1}", "0.b1") for i in range(10)}

    def test_one_of_fifty_fails_and_nothing_else_is_lost(self) -> None:
        root = Root(fails_for("#37"))
        results = root.batched([f"p#{i}" for i in range(50)])
        assert [r.ok for r in results] == [i != 37 for i in range(50)]
        failed = results[37]
        assert (results[36], failed.error, repr(failed)) == ("P#36", "no route", "<failed: no route>")
        assert not failed
        with pytest.raises(Exception, match="no route") as raised:
            str(failed)
        assert type(raised.value).__name__ == "SubCallError"
        with pytest.raises(TypeError):
            ", ".join(results)
        assert root.ledger.usage.calls == 49

    def test_a_batch_of_none_asks_nobody(self) -> None:
        root = Root(budget=Budget(calls=0))
        assert (root.batched([]), root.of("subcall_start")) == ([], [])

    def test_a_batch_larger_than_what_is_left_is_refused_as_a_whole(self) -> None:
        root = Root(budget=Budget(calls=10))
        root.query("one")
        with pytest.raises(SubCallError, match="12 calls are needed and 9 are left: nothing was asked"):
            root.batched([str(i) for i in range(12)])
        assert root.ledger.usage.calls == 1
        assert len(root.batched([str(i) for i in range(9)])) == 9
        with pytest.raises(BudgetSpent):
            root.batched(["x"])

    def test_what_tokens_do_not_cover_fails_and_what_was_paid_for_is_kept(self) -> None:
        root = Root(says("abcd" * 5), budget=Budget(output_tokens=40), concurrency=1)
        results = root.batched(["x"] * 20, max_tokens=10)
        assert len([r for r in results if r.ok]) == 8  # of 5 tokens each
        assert root.account.spent.output_tokens == 40
        assert all("limit of 40 output tokens" in r.error for r in results if not r.ok)

    def test_prompts_without_a_wish_share_what_is_left(self) -> None:
        """The first one does not take everything, so that all get an answer, and at the same time."""
        barrier = threading.Barrier(4, timeout=20)

        def answer(_: str) -> str:
            barrier.wait()
            return "abcd" * 10

        root = Root(Answering(answer), budget=Budget(output_tokens=60), concurrency=4)
        assert all(r.ok for r in root.batched(["a", "b", "c", "d"]))

    def test_contexts_go_with_their_prompts(self) -> None:
        assert Root().batched(["a", "b"], ["x", "y"]) == ["A\n\nX", "B\n\nY"]

    def test_an_interrupt_in_one_call_is_not_data(self) -> None:
        with pytest.raises(KeyboardInterrupt):
            Root(says(KeyboardInterrupt())).batched(["a", "b"])

    def test_what_was_not_begun_is_not_made_once_the_batch_has_ended(self) -> None:
        asked: list[str] = []
        root = Root(Answering(lambda text: asked.append(text) or SystemExit()), concurrency=4)
        with pytest.raises(SystemExit):
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
        with pytest.raises(DepthExceeded, match="max_depth=0"):
            root.query("x")
        with pytest.raises(DepthExceeded):
            root.batched(["x", "y"])
        assert (set(root.kinds), root.ledger.calls) == ({"denied"}, [])

    def test_a_model_that_recurses_without_end_meets_the_limit(self) -> None:
        deepest: list[int] = []

        def sub_agent(prompt: str, context: Any, inner: Meter) -> Outcome:
            deepest.append(inner.node.depth)
            query, _ = tools_of(root, inner, sub_agent)
            return outcome(inner, query("again") + "!")

        root = Root(max_depth=4, sub_agent=sub_agent)
        assert root.query("go") == "AGAIN!!!"
        assert deepest == [1, 2, 3]
        assert root.kinds == ["agent"] * 3 + ["completion"]
        assert [e["node"] for e in root.of("subcall_start")] == ["0.1", "0.1.1", "0.1.1.1", "0.1.1.1.1"]

    def test_it_gets_the_prompt_and_the_context_and_gives_text(self) -> None:
        def sub_agent(prompt: str, context: Any, inner: Meter) -> Outcome:
            return outcome(inner, [prompt, context, inner.node.depth])

        assert Root(max_depth=2, sub_agent=sub_agent).query("q", ["c"]) == "['q', ['c'], 1]"

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
    def test_a_sub_model_answers_and_the_agents_own_can_be_named(self) -> None:
        root = Root(Answering(lambda _: "big", "big"), sub_model=Answering(lambda _: "small", "small"))
        answers = [root.query("x"), root.query("x", model="big"), root.query("x", model="small")]
        assert answers == [e["model"] for e in root.of("subcall_start")] == ["small", "big", "small"]
        assert root.metered.name == "big"

    def test_each_model_has_its_own_price(self) -> None:
        small = Answering(upper, "small", price=(0.001, 0.01))
        root = Root(Answering(upper, "big", price=(1.0, 1.0)), sub_model=small, budget=Budget(cost=5.0))
        root.query("abcd")
        assert root.account.spent.cost == pytest.approx(8 * 0.001 + 1 * 0.01)

    def test_under_a_cost_limit_a_model_without_a_price_is_refused(self) -> None:
        big = Answering(upper, "big", price=(1.0, 1.0))
        with pytest.raises(SubCallError, match="price of free is not known"):
            Root(big, sub_model=Answering(upper, "free"), budget=Budget(cost=5)).query("x")
