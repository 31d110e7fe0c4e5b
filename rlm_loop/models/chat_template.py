"""What a chat looks like as the one text that a model reads: a Jinja template, or OpenAI's documented form."""

from __future__ import annotations

import contextlib
import json
from collections.abc import Callable, Mapping, Sequence
from datetime import datetime
from importlib import import_module
from pathlib import Path
from typing import Any, NoReturn, cast

from rlm_loop.errors import install_line
from rlm_loop.models.base import ModelError, RequestRejected

EXTRA = install_line("tokenizers")

#: Marks of the documented OpenAI form, each one token: characters that no text uses.
START, SEPARATOR, END = "\ue000", "\ue001", "\ue002"


class ChatTemplate:
    """A Jinja chat template as the `transformers` library runs it: sandboxed, with `tools` and `bos_token` and so on.

    `variables` are what the template may ask for besides the messages (special tokens, `enable_thinking` ...), `now`
    is the clock of templates that write the date.  Arguments of tool calls are given as objects where they are JSON.
    Raises `ModelError` where Jinja is missing or the template is no template.
    """

    def __init__(
        self, text: str, variables: Mapping[str, Any] | None = None, *, now: Callable[[], datetime] = datetime.now
    ) -> None:
        try:
            jinja2, sandbox = import_module("jinja2"), import_module("jinja2.sandbox")
        except ImportError as error:
            raise ModelError(f"chat templates need jinja2: {EXTRA}") from error
        self._wrong: type[Exception] = jinja2.TemplateError
        world: Any = sandbox.ImmutableSandboxedEnvironment(
            trim_blocks=True, lstrip_blocks=True, extensions=["jinja2.ext.loopcontrols"]
        )
        world.filters["tojson"] = _tojson
        world.globals |= {"raise_exception": self._refuse, "strftime_now": self._date}
        try:
            self._template: Any = world.from_string(text)
        except self._wrong as error:
            raise ModelError(
                f"the chat template cannot be read ({error}): is it the text of a Jinja template?"
            ) from error
        self._variables = dict(variables or {})
        self._now = now

    @classmethod
    def from_folder(cls, folder: str | Path, *, now: Callable[[], datetime] = datetime.now) -> ChatTemplate:
        """From the files beside a `tokenizer.json`: `chat_template.jinja` or `tokenizer_config.json`.

        Raises `ModelError` where neither holds a template.
        """
        where = Path(folder)
        try:
            config: dict[str, Any] = json.loads((where / "tokenizer_config.json").read_text(encoding="utf-8"))
        except FileNotFoundError:
            config = {}
        except (OSError, ValueError) as error:
            raise ModelError(f"{where / 'tokenizer_config.json'} cannot be read: {error}; fetch it again") from error
        own = where / "chat_template.jinja"
        text = own.read_text(encoding="utf-8") if own.is_file() else config.get("chat_template")
        if isinstance(text, Sequence) and not isinstance(text, str):  # several, by name
            named = {str(t["name"]): str(t["template"]) for t in cast("Sequence[Mapping[str, Any]]", text)}
            text = named.get("default") or next(iter(named.values()), None)
        if not isinstance(text, str):
            raise ModelError(f"{where} holds no chat template: give its text as template=")
        return cls(text, {k: _token(v) for k, v in config.items() if k.endswith("_token")}, now=now)

    def __call__(self, body: Mapping[str, Any]) -> str:
        """The text of a request.  Raises `RequestRejected` where the template refuses the messages."""
        messages = [_with_objects(message) for message in body["messages"]]
        asks = {"add_generation_prompt": True, **self._variables}
        try:
            text = self._template.render(messages=messages, tools=list(body.get("tools") or []) or None, **asks)
        except (self._wrong, TypeError, ValueError) as error:
            raise RequestRejected(f"the chat template refuses the messages: {error}") from error
        return str(text)

    @property
    def trailer(self) -> str:
        """What the template writes after a user's text."""
        probe = {"messages": [{"role": "user", "content": "ZprobeZ"}], "tools": None, "add_generation_prompt": False}
        try:
            return str(self._template.render(**{**self._variables, **probe})).partition("ZprobeZ")[2]
        except self._wrong:
            return ""

    def _date(self, form: str) -> str:
        return self._now().strftime(form)

    def _refuse(self, message: str) -> NoReturn:
        raise self._wrong(message)


def openai_chat(body: Mapping[str, Any]) -> str:
    """A request in the form that OpenAI describes: start, role, separator, text, end for each message.

    So each message takes three tokens and its role, and three more ask for the reply, as OpenAI's cookbook counts
    ("How to count tokens with tiktoken").  Tools are written as the harmony format does ("OpenAI harmony response
    format"); what newer models really read is not published, so unattributed tokens show how far it is off.
    """
    tools = [_typescript(tool.get("function", tool)) for tool in body.get("tools") or ()]
    schema = "".join(["# Tools\n\n## functions\n\nnamespace functions {\n\n", *tools, "} // namespace functions"])
    out: list[str] = [f"{START}system{SEPARATOR}{schema}{END}"] if tools else []
    for message in body["messages"]:
        content = message.get("content") or ""
        calls = message.get("tool_calls") or ()
        if content or not calls:
            out.append(f"{START}{message['role']}{SEPARATOR}{content}{END}")
        for call in calls:
            called = call["function"]
            out.append(f"{START}{message['role']} to=functions.{called['name']}{SEPARATOR}{called['arguments']}{END}")
    return "".join([*out, f"{START}assistant{SEPARATOR}"])


def _typescript(tool: Mapping[str, Any]) -> str:
    parameters: Mapping[str, Any] = tool.get("parameters") or {}
    required = parameters.get("required") or ()
    fields: list[str] = []
    for name, field in (parameters.get("properties") or {}).items():
        kinds = [json.dumps(v) for v in field["enum"]] if field.get("enum") else [str(field.get("type", "any"))]
        note = f"// {field['description']}\n" if field.get("description") else ""
        fields.append(f"{note}{name}{'' if name in required else '?'}: {' | '.join(kinds)},\n")
    note = f"// {tool['description']}\n" if tool.get("description") else ""
    taken = "_: {\n" + "".join(fields) + "}" if fields else ""
    return f"{note}type {tool.get('name', '')} = ({taken}) => any;\n\n"


def _with_objects(message: Mapping[str, Any]) -> dict[str, Any]:
    """Templates want the arguments of a call as an object; the wire has them as text."""
    calls = message.get("tool_calls")
    if not calls:
        return dict(message)
    changed: list[dict[str, Any]] = []
    for call in calls:
        function = dict(call["function"])
        with contextlib.suppress(ValueError):  # where a model wrote no JSON, the template gets the text
            function["arguments"] = json.loads(function.get("arguments") or "{}")
        changed.append({**call, "function": function})
    return {**message, "tool_calls": changed}


def _tojson(value: Any, ensure_ascii: bool = False, indent: int | None = None, **more: Any) -> str:
    """As `transformers` has it: Jinja's own escapes characters of HTML."""
    return json.dumps(value, ensure_ascii=ensure_ascii, indent=indent, **more)


def _token(stored: Any) -> Any:
    return stored.get("content") if isinstance(stored, Mapping) else stored
