"""What a recorded run costs at other prices: by hand, as a range where the trace does not know, and by command."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest

from rlm_loop import Budget, ToolLoopAgent
from rlm_loop.accounting.prices import known_price
from rlm_loop.accounting.pricing import Price, PriceError, price, read_prices
from rlm_loop.cli.main import main
from rlm_loop.messages import Reply, Usage
from rlm_loop.models import ScriptedModel

STEP = "```python\nprint(1)\n```"


def traced(folder: Path, *usages: Usage | None) -> str:
    replies = [Reply(STEP if i < len(usages) - 1 else "final", usage=u) for i, u in enumerate(usages)]
    file = folder / "t.jsonl"
    ToolLoopAgent(model=ScriptedModel(replies, name="m"), budget=Budget(steps=9)).run("Count.", trace=file)
    return str(file)


def test_reported_cached_tokens_have_their_price(tmp_path: Path) -> None:
    file = traced(tmp_path, Usage(1000, 100, 0), Usage(3000, 200, 1000))
    bill = price(file, Price(2.0, 10.0, cached=0.5))
    assert bill.cost == pytest.approx((3000 * 2 + 1000 * 0.5 + 300 * 10) / 1e6)
    assert sum(bill.causes.values()) == pytest.approx(bill.high)
    assert price(file, Price(2.0, 10.0)).cost == pytest.approx((4000 * 2 + 300 * 10) / 1e6)  # no discount
    assert [line.cached for line in bill.lines] == [0, 1000]
    assert list(bill.frame()["model"]) == ["m", "m"]


def test_what_is_not_known_makes_a_range(tmp_path: Path) -> None:
    file = traced(tmp_path, Usage(1000, 0, None), Usage(3000, 0, None))
    bill = price(file, Price(2.0, 10.0, cached=0.0))
    assert bill.cost is None
    assert bill.high == pytest.approx(4000 * 2 / 1e6)
    assert bill.low < bill.high
    assert bill.lines[0].cached == 0  # nothing had been sent before: no range
    assert bill.lines[1].cached is None
    assert "a range" in str(bill)
    written = price(traced(tmp_path, Usage(1000, 0, 0)), Price(2.0, 10.0, 0.2, cache_write=2.5))
    assert (written.low, written.high) == (pytest.approx(0.002), pytest.approx(0.0025))
    assert sum(written.causes.values()) == pytest.approx(written.high)


def test_calls_without_tokens_have_no_cost(tmp_path: Path) -> None:
    bill = price(traced(tmp_path, Usage(1000, 0, 0), None), Price(2.0, 10.0))
    # a scripted reply without usage is counted by the model; one with unknown figures is not
    assert bill.unknown == 0
    bill = price(traced(tmp_path, Usage(1000, 0, 0), Usage(None, None)), Price(2.0, 10.0))
    assert (bill.unknown, bill.cost, bill.high) == (1, None, pytest.approx(0.002))
    assert "1 calls more" in str(bill)


def test_with_the_rules_of_a_cache_reads_and_writes_are_simulated(tmp_path: Path) -> None:
    file = str(tmp_path / "t.jsonl")
    agent = ToolLoopAgent(model=ScriptedModel([STEP, "final"]), budget=Budget(steps=2))
    live = agent.run("Count these. " * 1000, trace=file)
    bill = price(file, Price(2.0, 10.0, cached=0.2, cache_write=2.5), cache="anthropic")
    assert bill.cost is not None
    [first, second] = bill.lines
    assert (first.cached, first.written) == (0, first.input_tokens)
    assert second.cached == sum(r.resent for r in live.ledger.calls[1].rows)  # what was sent before, whole messages
    assert second.cached > 3000
    assert second.written == (second.input_tokens or 0) - second.cached
    assert sum(bill.causes.values()) == pytest.approx(bill.cost)


def test_writes_that_the_provider_reported_leave_no_range(tmp_path: Path) -> None:
    prices = Price(2.0, 10.0, cached=0.2, cache_write=2.5)
    known = price(traced(tmp_path, Usage(1000, 100, 600, cache_write_tokens=300)), prices)
    assert known.cost == pytest.approx((100 * 2.0 + 600 * 0.2 + 300 * 2.5 + 100 * 10.0) / 1e6)
    assert known.lines[0].written == 300


@pytest.mark.parametrize(
    ("text", "name", "said"),
    [
        ('{"input": 1, "output": 2}', "a.json", None),
        ('{"m": {"input": 1, "output": 2, "cached": 0.1}, "*": {"input": 3, "output": 4}}', "a.json", None),
        ("[m]\ninput = 1\noutput = 2.5\n", "a.toml", None),
        ('{"other": {"input": 1, "output": 2}}', "a.json", "no price for m: add it"),
        ('{"m": {"input": 1}}', "a.json", "m needs input and output"),
        ('{"m": {"input": -1, "output": 2}}', "a.json", "m: input=-1 is no price"),
        ('{"m": {"input": 1, "output": "2"}}', "a.json", "output='2' is no price"),
        ("{", "a.json", "neither JSON nor TOML"),
        ("[]", "a.json", "holds no prices"),
    ],
)
def test_price_tables(text: str, name: str, said: str | None, tmp_path: Path) -> None:
    file = traced(tmp_path, Usage(10, 1, 0))
    (tmp_path / name).write_text(text)
    if said is None:
        assert price(file, read_prices(tmp_path / name)).cost
    else:
        with pytest.raises(PriceError, match=said):
            price(file, read_prices(tmp_path / name))


def test_by_command(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    def run(*arguments: str) -> tuple[int, str, str]:
        code = main(["trace", *arguments], models=lambda name, **_: ScriptedModel([]))
        return (code, *capsys.readouterr())

    file = traced(tmp_path, Usage(1000, 100, 500))
    code, out, _ = run("price", file, "--input", "2", "--cached", "1", "--output", "10")
    assert (code, out.splitlines()[0]) == (0, "$0.002500 for 1 calls, cached tokens as reported")
    _, out, _ = run("price", file, "--input", "2", "--output", "10", "--cache", "openai", "--json")
    assert json.loads(out)["high"] == pytest.approx(0.003)
    _, out, _ = run("cache", file, "--rules", "llama.cpp")
    assert out.startswith("llama.cpp: 0 of 1,000 prompt tokens")
    for arguments, said in [
        (("price", file), "no price for m"),
        (("price", file, "--input", "3"), "give --input and --output"),
        (("price", file, "--input", "1", "--output", "1", "--cache", "x"), "no rules are called 'x'"),
        (("price", file, "--prices", str(tmp_path / "none.json")), "cannot read the prices"),
        (("price", file, "--prices", "x", "--input", "1"), "not both"),
        (("cache", str(tmp_path / "none.jsonl")), "cannot read the trace"),
    ]:
        code, out, err = run(*arguments)
        assert code == 2 or "trace" in said
        assert said in err
        assert len(err.strip().splitlines()) == 1


def test_prices_are_those_of_genai_prices_and_else_of_litellm(monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("genai_prices", reason='pip install -e ".[litellm]"')
    pytest.importorskip("litellm", reason='pip install -e ".[litellm]"')
    known_price.cache_clear()
    assert known_price("anthropic/claude-haiku-4-5") == Price(input=1, output=5, cached=0.1, cache_write=1.25)
    assert known_price("gemini/gemini-2.5-pro") == Price(input=1.25, output=10, cached=0.125)  # of short prompts
    assert known_price("nobody/nothing-like-this") is known_price("local:mine.gguf") is None
    known_price.cache_clear()
    monkeypatch.setitem(sys.modules, "genai_prices", None)
    other = known_price("anthropic/claude-haiku-4-5")
    assert other is not None
    assert (other.input, other.output) == pytest.approx((1, 5))
    monkeypatch.setitem(sys.modules, "litellm", None)
    known_price.cache_clear()
    assert known_price("anthropic/claude-haiku-4-5") is None
    known_price.cache_clear()
