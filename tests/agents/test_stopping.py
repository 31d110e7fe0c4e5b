import pytest

from rlm_loop.accounting import Account, Budget
from rlm_loop.actions import Action, CallTool, Failure, FinalAnswer, Malformed, Note, Observation, RunCode
from rlm_loop.agents.stopping import stop_reason
from rlm_loop.messages import Reply, Usage
from rlm_loop.outcome import Turn


def turn(index: int, action: Action, seen: Observation, text: str = "") -> Turn:
    return Turn(index, Reply(text or f"reply {index}"), (action,), (seen,))


def failed(kind: str = "runtime") -> Observation:
    return Observation("bad", Failure(kind, "bad"), "error")  # type: ignore[arg-type]


CALL = CallTool("f", "{}")


@pytest.mark.parametrize(
    ("turns", "stop"),
    [
        ([], None),
        ([turn(1, CALL, failed())] * 1, None),
        ([turn(n, CALL, failed()) for n in (1, 2, 3)], "tool_failures"),
        ([turn(1, CALL, failed()), turn(2, CALL, Observation("ok")), turn(3, CALL, failed())], None),
        # a cell that raises is ordinary work: it neither counts nor resets
        ([turn(n, RunCode("x"), failed()) for n in (1, 2, 3, 4)], None),
        ([turn(n, Malformed("x"), failed("malformed")) for n in (1, 2)], None),
        ([turn(n, Malformed("x"), failed("malformed")) for n in (1, 2, 3)], "malformed"),
        ([turn(n, Malformed("x", notes=(Note.REFUSAL,)), failed("malformed")) for n in (1, 2)], "blocked"),
        ([turn(n, RunCode("x"), Observation("1"), "same") for n in (1, 2)], "repeated"),
        # the number of the cell in a traceback and an object's address are no difference
        ([turn(n, RunCode("x"), Observation(f'File "<cell {n}>", line 1'), "same") for n in (1, 2)], "repeated"),
        ([turn(n, RunCode("x"), Observation(f"<f at 0x7f{n}a>"), "same") for n in (1, 2)], "repeated"),
        # the same check() with another result is progress
        ([turn(n, RunCode("x"), Observation(str(n)), "same") for n in (1, 2)], None),
        ([turn(n, RunCode("x"), Observation("1"), "ab"[n % 2]) for n in (1, 2, 3, 4)], "repeated"),
        ([turn(n, RunCode("x"), Observation("1"), "ab"[n % 2]) for n in (1, 2, 3)], None),
        ([turn(n, RunCode("x"), failed("rejected")) for n in (1, 2)], None),
        ([turn(1, RunCode("x"), Observation(answer=FinalAnswer(None)))], "answered"),
    ],
)
def test_verdicts(turns: list[Turn], stop: str | None) -> None:
    found = stop_reason(turns, Account(Budget(steps=None)))
    assert (found and found[0]) == stop
    if stop not in (None, "answered"):
        assert found is not None
        assert found[1]


def test_limits_are_checked_after_an_answer_and_before_anything_else() -> None:
    account = Account(Budget(steps=1, calls=1))
    account.settle(account.reserve(1, 1), Usage(1, 1))
    turns = [turn(1, RunCode("x"), Observation(answer=FinalAnswer(1))), turn(1, RunCode("x"), Observation("1"))]
    none = Account(Budget(steps=0))
    found = [stop_reason(t, a) for t, a in (([turns[0]], account), ([turns[1]], account), ([], account), ([], none))]
    assert [one and one[0] for one in found] == ["answered", "steps", "calls", "steps"]
