"""llama.cpp in this process, with SmolLM2 (and with the default model where it is in the cache)."""

from __future__ import annotations

import os
import signal
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path
from typing import Any

import httpx
import pytest

from rlm_loop import DirectAgent
from rlm_loop.messages import Message, Prompt, Span, ToolCall, say
from rlm_loop.models import LocalModel, ModelError, ModelNotFound, RequestRejected
from rlm_loop.report import start_live

SYSTEM = say("system", "You are terse. user", "system")
ASK = Message("user", (Span("How much is ", "task"), Span("2 + 3?\n", "scaffold:turns")))
SAID = say("assistant", "  Let me see: é 😀 \n", "assistant", turn=1)
SHOWN = say("user", "user", "repl_output", turn=1)
CALLED = Message("assistant", (), (ToolCall("1", "add", '{"a": 1}'), ToolCall("2", "add", "")), turn=1)
TWO = Message("tool", (Span("2", "tool_result"),), tool_call_id="1", turn=1)
RESULTS = TWO, Message("tool", (), tool_call_id="2", turn=1)
TOOL = {"type": "function", "function": {"name": "add", "description": "adds", "parameters": {"type": "object"}}}

PLAIN = [
    Prompt((ASK,)),
    Prompt((SYSTEM, ASK, SAID, SHOWN)),
    Prompt((ASK, SAID)),
    Prompt((SYSTEM, ASK, SAID, SHOWN, SAID, SYSTEM, SHOWN), reply_schema={"type": "object"}),
    Prompt((say("user", "<|im_end|>\n<|im_start|>user\n", "task"),)),
    Prompt((say("user", "", "task"),)),
    Prompt((ASK, say("assistant", "The three primary", "assistant"), say("assistant", "colours are", "user"))),
    Prompt(),
]
WITH_TOOLS = [
    Prompt((SYSTEM, ASK), (TOOL,)),
    Prompt((ASK, CALLED, *RESULTS), (TOOL, TOOL)),
    Prompt((SYSTEM, ASK, CALLED, *RESULTS, SAID, SHOWN, CALLED, TWO), (TOOL,)),
]


@pytest.mark.parametrize("prompt", PLAIN)
def test_measure_is_what_llama_cpp_reports(small: LocalModel, prompt: Prompt) -> None:
    usage: Any = small.complete(prompt, max_tokens=1).usage
    assert sum(part.tokens for part in small.measure(prompt)) == usage.input_tokens


@pytest.mark.parametrize("prompt", WITH_TOOLS)
def test_measure_with_native_tools(coder: LocalModel, prompt: Prompt) -> None:
    usage: Any = coder.complete(prompt, max_tokens=1).usage
    parts = coder.measure(prompt)
    assert sum(part.tokens for part in parts) == usage.input_tokens
    assert sum(part.tokens for part in parts if part.cause == "tool_schema") > 90
    assert ("assistant" in {part.cause for part in parts}) == any(m.tool_calls for m in prompt.messages)


def test_parts_name_their_causes_in_reading_order(small: LocalModel) -> None:
    parts = small.measure(Prompt((SYSTEM, ASK, SAID, SHOWN)))
    causes = [("system", 0), ("task", 1), ("scaffold:turns", 1), ("assistant", 2), ("repl_output", 3)]
    assert [(p.cause, p.message) for p in parts if p.cause != "template"] == causes
    assert [p.message for p in parts] == sorted(p.message for p in parts)
    assert parts[-1].message == 4  # the marker that asks for a reply
    assert {p.origin_turn for p in parts if p.message in (2, 3)} == {1}
    for cause in ("task", "summary"):  # a measurement is kept for the same prompt, not for one that reads the same
        assert cause in {p.cause for p in small.measure(Prompt((say("user", "the same text", cause),)))}


def test_a_reply(small: LocalModel) -> None:
    reply = small.complete(Prompt((SYSTEM, ASK)), max_tokens=5)
    usage: Any = reply.usage
    assert (usage.output_tokens, reply.finish_reason, usage.cost) == (5, "length", 0.0)
    assert (reply.extra["timings"]["predicted_n"], reply.waited) == (5, 0)
    assert reply.text
    assert reply.seconds > 0
    assert (small.name, small.window, small.price) == ("local:smollm2-135m", 2048, (0.0, 0.0))


@pytest.mark.slow
def test_the_text_is_the_same_in_every_run_and_the_prefix_is_cached(small: LocalModel) -> None:
    prompt = Prompt((say("user", "Name three rivers.", "task"),))
    first = small.complete(prompt, max_tokens=20)
    again = small.complete(prompt, max_tokens=20)
    assert again.text == first.text
    usage: Any = again.usage
    assert usage.cache_read_tokens == usage.input_tokens - 1
    more = [say("assistant", first.text, "assistant"), say("user", "And one more?", "task")]
    cached: Any = small.complete(prompt + more, max_tokens=1).usage
    assert cached.cache_read_tokens >= usage.input_tokens


@pytest.mark.slow
def test_without_the_prompt_cache_every_prompt_is_read_whole(small: LocalModel) -> None:
    whole = LocalModel("smollm2-135m", context_size=2048, threads=small.threads, prompt_cache=False)
    prompt = Prompt((say("user", "Name three rivers, and say of each where it ends.", "task"),))
    other = Prompt((say("user", "Name three rivers, and say of each where it begins.", "task"),))
    replies = [whole.complete(prompt, max_tokens=8)]
    for before in (other, prompt, Prompt.ask("Name a colour.")):
        small.complete(before, max_tokens=3)  # the same loaded copy, with its cache
        replies.append(whole.complete(prompt, max_tokens=8))
    assert {reply.usage.cache_read_tokens for reply in replies if reply.usage} == {0}
    assert len({reply.text for reply in replies}) == 1
    assert whole.sampling == {**small.sampling, "prompt_cache": False}
    assert whole.load() is small.load()


def test_a_seed_repeats_and_another_differs(small: LocalModel) -> None:
    def text(seed: int) -> str:
        warm = LocalModel("smollm2-135m", context_size=2048, threads=1, temperature=1.5, seed=seed)
        assert warm.load() is small.load(), "one loaded copy is shared"
        return warm.complete(Prompt.ask("Tell me something odd."), max_tokens=16).text

    assert text(1) == text(1) != text(2)


def test_stop_strings_end_a_reply(small: LocalModel) -> None:
    prompt = Prompt((say("user", "Count: one, two, three, four, five", "task"),))
    whole = small.complete(prompt, max_tokens=24).text
    word = whole.split()[2]
    assert small.complete(Prompt(prompt.messages, stop=(word,)), max_tokens=24).text == whole[: whole.index(word)]


def test_a_schema_forms_the_reply(small: LocalModel) -> None:
    schema = {"type": "object", "properties": {"a": {"enum": [17]}}, "required": ["a"], "additionalProperties": False}
    reply = small.complete(Prompt((ASK,), reply_schema=schema), max_tokens=40)
    assert "".join(reply.text.split()) == '{"a":17}'


@pytest.mark.parametrize(
    ("prompt", "says"),
    [
        (Prompt((ASK, replace(SAID, tool_calls=(ToolCall("1", "f", "{}"),)), SAID)), "2 or more assistant messages"),
        (Prompt.ask("word " * 4000), r"\d{4} tokens\) exceeds the available context size \(2048 tokens\)"),
        (Prompt((ASK,), tools=(TOOL,)), "no place for native tools: present them as text"),
        (Prompt((ASK,), reply_schema={"type": "nothing"}), "refused the request .*nothing"),
        (Prompt.ask("lone \ud800"), "surrogate"),
    ],
)
def test_what_is_refused_says_what_to_do(small: LocalModel, prompt: Prompt, says: str) -> None:
    with pytest.raises(RequestRejected, match=says) as caught:
        small.complete(prompt, max_tokens=1)
    assert "\n" not in str(caught.value)


def test_arguments_that_are_no_json(coder: LocalModel) -> None:
    broken = Message("assistant", (), (ToolCall("1", "add", '{"a": '),))
    with pytest.raises(ModelError, match="tool call arguments as JSON"):
        coder.complete(Prompt((ASK, broken, TWO), (TOOL,)), max_tokens=1)


def test_the_address_is_closed_to_others(small: LocalModel) -> None:
    """Code that a model writes runs on the same machine: it must not reach the model unmetered."""
    server = small.load()
    for place in ("/v1/chat/completions", "/completion", "/tokenize"):
        assert httpx.post(server.address + place, json={}, trust_env=False).status_code == 401


def test_calls_from_threads_queue_up(small: LocalModel) -> None:
    prompts = [Prompt.ask(f"Say the number {n}.") for n in range(4)]
    alone = [small.complete(p, max_tokens=4).text for p in prompts]
    with ThreadPoolExecutor(4) as pool:
        assert list(pool.map(lambda p: small.complete(p, max_tokens=4).text, prompts)) == alone


@pytest.mark.skipif(sys.platform == "win32", reason="signals")
def test_ctrl_c_stops_a_reply_at_once(small: LocalModel) -> None:
    prompt = Prompt.ask("Tell a very long story about a dog and a cat.")
    small.complete(prompt, max_tokens=1)
    start = time.perf_counter()
    small.complete(prompt, max_tokens=40)
    short, start = time.perf_counter() - start, time.perf_counter()
    threading.Timer(0.2, os.kill, (os.getpid(), signal.SIGINT)).start()
    with pytest.raises(KeyboardInterrupt):
        small.complete(Prompt(prompt.messages, stop=("never",)), max_tokens=1900)
    small.complete(prompt, max_tokens=1)  # not queued behind the rest of the story, 47 times as long
    assert time.perf_counter() - start < 20 * short + 0.2


EMPTY = b"GGUF" + (3).to_bytes(4, "little") + bytes(80)  # sound, and empty: llama.cpp itself refuses it


@pytest.mark.parametrize("content", [b"<html>404</html>", b"GGUF\x03\0\0\0", EMPTY])
def test_a_bad_file_is_one_line(tmp_path: Path, content: bytes) -> None:
    file = tmp_path / "model.gguf"
    file.write_bytes(content)
    with pytest.raises(ModelError, match=rf"could not load .*\({len(content)} bytes\)|need xllamacpp") as caught:
        LocalModel(file).complete(Prompt((ASK,)))
    assert "\n" not in str(caught.value)


def test_a_cut_off_file_does_not_end_the_process(small_file: Path, tmp_path: Path) -> None:
    file = tmp_path / "cut.gguf"
    with small_file.open("rb") as source:
        file.write_bytes(source.read(20_000_000))
    with pytest.raises(ModelError, match=r"could not load .*\(20,000,000 bytes\)"):
        LocalModel(file).load()


def test_a_known_model_that_is_not_here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("RLM_LOOP_CACHE", str(tmp_path))
    with pytest.raises(ModelNotFound, match=r"run `rlm-loop models pull qwen2\.5-coder-1.5b`"):
        LocalModel("local").complete(Prompt((ASK,)))


class Heard:
    def __init__(self) -> None:
        self.told: list[tuple[str, str]] = []
        self.writes = threading.Event()

    def on_text(self, kind: str, text: str) -> None:
        self.told.append((kind, text))
        if kind == "text":
            self.writes.set()


def test_a_streamed_reply_is_the_same_reply(small: LocalModel) -> None:
    heard = Heard()
    agent = DirectAgent(model=small, max_tokens=12, max_steps=1)
    plain, streamed = agent.run("Count to nine."), agent.run("Count to nine.", hooks=[heard])
    assert streamed.last_reply == plain.last_reply == "".join(text for kind, text in heard.told if kind == "text")
    assert len(heard.told) > 5
    # how much of the prompt is cached depends on what was asked before
    assert (streamed.usage.input_tokens, streamed.usage.output_tokens) == (plain.usage.input_tokens, 12)
    assert streamed.ledger.by_cause() == plain.ledger.by_cause()


def test_a_stopped_run_frees_the_model_for_the_next_one(small: LocalModel) -> None:
    """It would write for minutes: the window is what ends it."""
    heard = Heard()
    agent = DirectAgent(model=small, max_tokens=100_000, hooks=[heard])
    run = start_live(agent, "Count to a million, one number a line.", show=False)
    assert heard.writes.wait(60)
    run.stop()
    assert run.result(60).stop == "interrupted"
    assert small.complete(Prompt((ASK,)), max_tokens=1).usage


def test_loading_is_told(small: LocalModel) -> None:  # asked for so that it is skipped where the file is not here
    heard = Heard()
    own = LocalModel("smollm2-135m", context_size=1024, threads=1)  # no other test has it loaded
    DirectAgent(model=own, max_tokens=2, max_steps=1).run("?", hooks=[heard])
    assert [kind for kind, _ in heard.told][:2] == ["begin", "loading"]
