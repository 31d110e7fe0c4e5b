"""Any model with a tokenizer beside it: tokens are charged to the text that holds their first character."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rlm_loop.messages import Message, Prompt, Reply, Span, ToolCall, Usage, say
from rlm_loop.models import ScriptedModel, Tokenized
from rlm_loop.models.base import Measuring, ModelError, RequestRejected
from rlm_loop.models.chat_template import ChatTemplate

tokenizers = pytest.importorskip("tokenizers")
tiktoken = pytest.importorskip("tiktoken")
pytest.importorskip("jinja2")

CHATML = (
    "{% if tools %}<|im_start|>tools\n{% for t in tools %}{{ t | tojson }}{% endfor %}<|im_end|>\n{% endif %}"
    "{% for m in messages %}<|im_start|>{{ m.role }}\n{{ m.content }}"
    "{% for c in m.tool_calls or [] %}<call>{{ c.function.arguments | tojson }}</call>{% endfor %}<|im_end|>\n"
    "{% endfor %}{% if add_generation_prompt %}<|im_start|>assistant\n{% endif %}"
)


def a_tokenizer(normalizer: Any = None) -> Any:
    """Byte-level, as those of most chat models, with a post-processor that cuts spaces off the offsets."""
    made = tokenizers.Tokenizer(tokenizers.models.BPE())
    made.pre_tokenizer = tokenizers.pre_tokenizers.ByteLevel(add_prefix_space=False)
    if normalizer is not None:
        made.normalizer = normalizer
    trainer = tokenizers.trainers.BpeTrainer(
        vocab_size=330,
        initial_alphabet=tokenizers.pre_tokenizers.ByteLevel.alphabet(),
        special_tokens=["<|im_start|>", "<|im_end|>"],
        show_progress=False,
    )
    made.train_from_iterator(["user assistant system the text of the task the text"] * 4, trainer)
    made.post_processor = tokenizers.processors.ByteLevel(trim_offsets=True)
    return made


PLAIN = a_tokenizer()
TEMPLATE = ChatTemplate(CHATML)
ENCODING = tiktoken.Encoding(
    "bytes and a few", pat_str=r"\S+|\s+", mergeable_ranks={bytes([i]): i for i in range(256)}, special_tokens={}
)
MODELS = {
    "tokenizers": Tokenized(ScriptedModel([]), PLAIN, CHATML),
    "tokenizers, composing": Tokenized(ScriptedModel([]), a_tokenizer(tokenizers.normalizers.NFC()), CHATML),
    "tiktoken": Tokenized(ScriptedModel([]), ENCODING),
    "tiktoken, with a template": Tokenized(ScriptedModel([]), ENCODING, CHATML),
}
TEXTS = st.one_of(
    st.text(max_size=12),
    st.sampled_from(["👩‍👩‍👧‍👦", "e", "\u0301", "\ud83d", "<|im_end|>", "<|im_start|>user\n", " ", "the text", "\r\n"]),
)
CAUSES = st.sampled_from(["task", "system", "scaffold:x", "repl_output"])
MESSAGES = st.builds(
    lambda role, spans, arguments, turn: Message(
        role,
        tuple(Span(t, c) for t, c in spans),
        (ToolCall("1", "f", arguments),) if role == "assistant" and arguments is not None else (),
        turn=turn,
    ),
    st.sampled_from(["system", "user", "assistant", "tool"]),
    st.lists(st.tuples(TEXTS, CAUSES), max_size=3),
    st.one_of(st.none(), st.just('{"a": "é"}'), TEXTS),
    st.integers(0, 3),
)
TOOL = {
    "type": "function",
    "function": {
        "name": "look",
        "description": "Look it up.",
        "parameters": {
            "type": "object",
            "properties": {"word": {"type": "string"}, "how": {"enum": ["a", "b"]}},
            "required": ["word"],
        },
    },
}


@given(st.lists(MESSAGES, max_size=4), st.booleans(), st.sampled_from(sorted(MODELS)))
def test_the_parts_sum_to_the_tokens_of_the_rendered_chat(messages: list[Message], tools: bool, kind: str) -> None:
    model = MODELS[kind]
    prompt = Prompt(tuple(messages), (TOOL,) if tools else ())
    parts = model.measure(prompt)
    if kind == "tokenizers":
        text = "".join("\ufffd" if "\ud800" <= c <= "\udfff" else c for c in TEMPLATE(prompt.to_dict()))
        assert sum(p.tokens for p in parts) == len(PLAIN.encode(text, add_special_tokens=False).ids)
    assert all(p.tokens > 0 for p in parts)
    order = [p.message for p in parts if p.cause != "tool_schema"]
    assert order == sorted(order)
    assert any(p.cause == "tool_schema" for p in parts) == tools


@pytest.mark.parametrize("kind", ["tokenizers", "tiktoken"])
def test_each_token_goes_to_the_text_that_holds_its_first_character(kind: str) -> None:
    spans = (Span("the te", "task"), Span("xt of", "scaffold:x"), Span(" 👩 task the", "repl_output"))
    text = "".join(span.text for span in spans)
    # in a byte-level vocabulary a token has as many letters as it stands for bytes
    lengths = [1] * len(text.encode()) if kind == "tiktoken" else [len(t) for t in PLAIN.encode(text).tokens]
    owners = [span.cause for span in spans for _ in span.text.encode()]
    expected: dict[str, int] = {}
    at = 0
    for length in lengths:
        expected[owners[at]] = expected.get(owners[at], 0) + 1
        at += length
    found = MODELS[kind].measure(Prompt((Message("user", spans),)))
    assert {p.cause: p.tokens for p in found if p.cause != "template"} == expected


def test_an_emoji_split_over_tokens_belongs_to_one_text() -> None:
    prompt = Prompt((Message("user", (Span("a", "task"), Span("👩", "scaffold:x"), Span("b", "repl_output"))),))
    for model in MODELS.values():
        found = {p.cause: p.tokens for p in model.measure(prompt) if p.cause != "template"}
        assert found == {"task": 1, "scaffold:x": 4, "repl_output": 1}


def test_a_mark_that_joins_the_text_before_is_charged_where_the_character_begins() -> None:
    prompt = Prompt((Message("user", (Span("e", "task"), Span("\u0301", "scaffold:x"))),))
    found = [p.cause for p in MODELS["tokenizers, composing"].measure(prompt) if p.cause != "template"]
    assert found == ["task"]


def test_openai_counts_three_tokens_a_message_its_role_and_three_more() -> None:
    """The rule of OpenAI's cookbook; in this encoding a role is as many tokens as it has bytes."""
    prompt = Prompt((say("system", "ab", "system"), say("user", "<|endoftext|>", "task")))
    parts = MODELS["tiktoken"].measure(prompt)
    assert sum(p.tokens for p in parts) == (3 + 6 + 2) + (3 + 4 + 13) + 2 + len("assistant")
    assert {p.cause: p.tokens for p in parts if p.cause != "template"} == {"system": 2, "task": 13}


def test_a_template_that_rewrites_a_reply_keeps_its_cause_and_one_with_tools_in_two_places() -> None:
    template = (
        "{% if tools %}[tools on]{% endif %}{% for m in messages %}<{{ m.role }}>"
        "{% if loop.last and tools %}{{ tools | tojson }}{% endif %}{{ m.content.split('</think>')[-1] }}</>"
        "{% endfor %}"
    )
    model = Tokenized(ScriptedModel([]), ENCODING, template)
    said = "<think>hm, so it is</think>yes"
    prompt = Prompt((say("user", "q", "task"), say("assistant", said, "assistant"), say("user", "r", "task")), (TOOL,))
    found = [(p.cause, p.tokens) for p in model.measure(prompt) if p.cause != "template"]
    schema = len(json.dumps([TOOL]))
    assert found == [("tool_schema", 10), ("task", 1), ("assistant", 3), ("tool_schema", schema), ("task", 1)]


def test_a_folder_with_the_files_of_a_model(tmp_path: Path) -> None:
    PLAIN.save(str(tmp_path / "tokenizer.json"))
    config = {
        "chat_template": [{"name": "default", "template": "{{ bos_token }}" + CHATML}],
        "bos_token": {"content": "B"},
    }
    (tmp_path / "tokenizer_config.json").write_text(json.dumps(config))
    model = Tokenized(ScriptedModel(["x"], price=(1.0, 2.0)), tmp_path)
    assert isinstance(model, Measuring)
    assert (model.name, model.price, model.complete(Prompt.ask("q")).text) == ("scripted", (1.0, 2.0), "x")
    plain = sum(p.tokens for p in MODELS["tokenizers"].measure(Prompt.ask("q")))
    assert sum(p.tokens for p in model.measure(Prompt.ask("q"))) == plain + 1
    (tmp_path / "chat_template.jinja").write_text("{{ raise_exception('no system text') }}")
    with pytest.raises(RequestRejected, match="no system text"):
        Tokenized(ScriptedModel([]), tmp_path).measure(Prompt.ask("q"))


def test_what_is_no_tokenizer_is_said_in_one_line(tmp_path: Path) -> None:
    for tokenizer, template, said in [
        (object(), CHATML, "object is no tokenizer"),
        (PLAIN, None, "give the template="),
        (tmp_path, CHATML, "tokenizer.json cannot be read"),
        (tmp_path, None, "holds no chat template"),
        (PLAIN, "{% for %}", "cannot be read"),
    ]:
        with pytest.raises(ModelError, match=said):
            Tokenized(ScriptedModel([]), tokenizer, template)


def test_the_ledger_of_a_provider_shows_what_its_tokenizer_did_not_find() -> None:
    from rlm_loop import Budget, DirectAgent

    reply = Reply("4", usage=Usage(200, 1, 0))
    outcome = DirectAgent(model=Tokenized(ScriptedModel([reply]), ENCODING), budget=Budget(steps=1)).run("2 + 2?")
    [call] = outcome.ledger.calls
    assert call.counted is not None
    assert (call.exact, call.unattributed) == (False, 200 - call.counted)
    assert outcome.ledger.by_cause()["unattributed"] == call.unattributed
