"""Six ways to call the same tools, each with the best policy by script: exact tokens, a formula, and its test.

`python experiments/overhead/break_even.py` runs what `results/break_even.csv` lacks (no model writes; the local model's
tokenizer counts), fits the formula on half of the shapes, and writes what it says of the other half.
"""

from __future__ import annotations

import csv
import itertools
import json
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

sys.path.append(str(Path(__file__).resolve().parents[2]))  # the repository's folder, for `experiments`

from rlm_loop import Budget, LeanAgent, ReActAgent, Task, ToolLoopAgent
from rlm_loop.agents import Agent
from rlm_loop.messages import Prompt, Reply, ToolCall, Usage
from rlm_loop.models import LocalModel, ScriptedModel
from rlm_loop.report import Table, write_between
from rlm_loop.tools import Tool

HERE = Path(__file__).resolve().parent
RESULTS = HERE / "results" / "break_even.csv"
#: Words of a result beside its two fields.
_FILL = "the record was checked by the office and holds no further remark about this matter at present "


@dataclass(frozen=True, order=True)
class Shape:
    """A task: `steps` that depend on each other, in each `fan` calls that do not, among `tools` tools, and results of
    about `size` words."""

    tools: int
    steps: int
    fan: int
    size: int

    def key(self, step: int) -> str:
        return f"K{1000 + 37 * step}"

    def value(self, step: int, call: int) -> int:
        return (7 * step + 3 * call) % 50

    def result(self, step: int, call: int) -> str:
        words = (_FILL * (self.size // 10 + 1)).split()[: self.size]
        return json.dumps({"next": self.key(step + 1), "value": self.value(step, call), "note": " ".join(words)})

    @property
    def total(self) -> int:
        return sum(self.value(step, call) for step in range(self.steps) for call in range(self.fan))

    @property
    def question(self) -> str:
        return (
            f"Begin with the key {self.key(0)}. In each of {self.steps} steps, call the first {self.fan} tools with "
            "the key and add up the field value of what they return; the field next of the first is the next key. "
            "Answer with the sum of all values."
        )


_NOUNS = ("invoice", "customer", "shipment", "contract", "ticket", "payment", "product", "supplier", "branch", "order")
_VERBS = ("get", "fetch", "find", "read", "look_up", "load", "check", "open", "list", "show")


def name_of(call: int) -> str:
    return f"{_VERBS[call // 10 % 10]}_{_NOUNS[call % 10]}"


def tools_of(shape: Shape) -> list[Tool]:
    """Return the tools; they answer from the shape, whatever key they get in a step."""
    steps = {shape.key(step): step for step in range(shape.steps)}

    def tool(call: int) -> Tool:
        def run(key: str) -> str:
            return shape.result(steps[key], call)

        noun = name_of(call).rpartition("_")[2]
        return Tool(name_of(call), f"Return the {noun} of this key as JSON.", run)

    return [tool(call) for call in range(shape.tools)]


class Exact(ScriptedModel):
    """A script whose requests and replies are counted by the tokenizer and template of the local model."""

    def __init__(self, replies: Sequence[Reply], tokenizer: LocalModel) -> None:
        super().__init__(replies, name="script")
        self._tokenizer = tokenizer
        self.sizes: list[int] = []
        self.written: list[int] = []

    def complete(self, prompt: Prompt, *, max_tokens: int | None = None) -> Reply:
        reply = super().complete(prompt)
        calls = "".join(json.dumps({"name": call.name, "arguments": call.arguments}) for call in reply.tool_calls)
        self.sizes.append(sum(part.tokens for part in self._tokenizer.measure(prompt)))
        self.written.append(self._tokenizer.count(reply.text + calls))
        return replace(reply, usage=Usage(self.sizes[-1], self.written[-1]))


def _call(shape: Shape, step: int, call: int) -> ToolCall:
    return ToolCall(f"c{step}_{call}", name_of(call), json.dumps({"key": shape.key(step)}))


def _answer(shape: Shape) -> Reply:
    return Reply("", (ToolCall("end", "final_answer", json.dumps({"answer": shape.total})),))


def one_by_one(shape: Shape) -> Iterator[Reply]:
    for step, call in itertools.product(range(shape.steps), range(shape.fan)):
        yield Reply("", (_call(shape, step, call),))
    yield _answer(shape)


def parallel(shape: Shape) -> Iterator[Reply]:
    for step in range(shape.steps):
        yield Reply("", tuple(_call(shape, step, call) for call in range(shape.fan)))
    yield _answer(shape)


def react(shape: Shape) -> Iterator[Reply]:
    for step, call in itertools.product(range(shape.steps), range(shape.fan)):
        given = json.dumps({"key": shape.key(step)})
        thought = f"Thought: I need {name_of(call)} for the key {shape.key(step)}."
        yield Reply(f"{thought}\nAction: {name_of(call)}\nAction Input: {given}")
    given = json.dumps({"answer": shape.total})
    yield Reply(f"Thought: All values are known.\nAction: finish\nAction Input: {given}")


def _names(shape: Shape) -> str:
    return ", ".join(name_of(call) for call in range(shape.fan))


def _step(shape: Shape, step: int) -> str:
    """Return the cell of one step, after which the model looks at what came back."""
    first = "import json\ntotal = 0\n" if step == 0 else ""
    return (
        f"{first}found = [json.loads(tool({shape.key(step)!r})) for tool in ({_names(shape)},)]\n"
        "total += sum(one['value'] for one in found)\nprint(total, found[0]['next'])"
    )


def _program(shape: Shape) -> str:
    return (
        f"import json\ntotal, key = 0, {shape.key(0)!r}\nfor _ in range({shape.steps}):\n"
        f"    found = [json.loads(tool(key)) for tool in ({_names(shape)},)]\n"
        "    total += sum(one['value'] for one in found)\n    key = found[0]['next']\n"
    )


def code(shape: Shape) -> Iterator[Reply]:
    for step in range(shape.steps):
        yield Reply(f"```python\n{_step(shape, step)}\n```")
    yield Reply("```python\nfinal_answer = total\n```")


def one_shot(shape: Shape) -> Iterator[Reply]:
    yield Reply(f"```python\n{_program(shape)}final_answer = total\n```")


def nested(shape: Shape) -> Iterator[Reply]:
    for step in range(shape.steps):
        yield Reply("", (ToolCall(f"c{step}", "exec", json.dumps({"code": _step(shape, step)})),))
    yield _answer(shape)


def _exec_tool(shape: Shape) -> Tool:
    """Return the one tool of nested calls, as Codex has it: its help lists the functions that the code may call."""
    import contextlib
    import io

    tools = tools_of(shape)
    space: dict[str, Any] = {tool.name: tool.function for tool in tools}

    def run(code: str) -> str:
        out = io.StringIO()
        with contextlib.redirect_stdout(out):
            exec(code, space)
        return out.getvalue().rstrip("\n")

    lines = "\n".join(f"{tool.name}(key: str) -> str: {tool.description}" for tool in tools)
    return Tool("exec", f"Run Python and return what it prints. Functions:\n{lines}", run)


Policy = Callable[[Shape], Iterator[Reply]]
#: By dialect: its best policy, and the agent that follows it.
DIALECTS: Mapping[str, tuple[Policy, Callable[[Shape], Agent]]] = {
    "calls": (one_by_one, lambda s: LeanAgent(presentation="native", tools=tuple(tools_of(s)))),
    "parallel": (parallel, lambda s: LeanAgent(presentation="native", tools=tuple(tools_of(s)))),
    "react": (react, lambda s: ReActAgent(tools=tuple(tools_of(s)))),
    "code": (code, lambda s: ToolLoopAgent(repl="plain", tools=tuple(tools_of(s)), max_depth=0)),
    "one_shot": (one_shot, lambda s: ToolLoopAgent(repl="plain", tools=tuple(tools_of(s)), max_depth=0)),
    "nested": (nested, lambda s: LeanAgent(presentation="native", tools=(_exec_tool(s),))),
}
#: The formula of a request's tokens is linear in these, by dialect: `t` is the request (1 is the first) less one.
TERMS: Mapping[str, tuple[str, ...]] = {
    "calls": ("1", "tools", "t", "t*size"),
    "parallel": ("1", "tools", "t", "t*fan", "t*fan*size"),
    "react": ("1", "tools", "t", "t*size"),
    "code": ("1", "tools", "t", "t*fan"),
    "one_shot": ("1", "tools"),
    "nested": ("1", "tools", "t", "t*fan"),
}


def shapes() -> list[Shape]:
    """Return the shapes that are run."""
    grid = itertools.product((5, 20, 60), (1, 3, 6), (1, 2, 5), (10, 100))
    return [Shape(*numbers) for numbers in grid]


def run(shape: Shape, dialect: str, tokenizer: LocalModel) -> dict[str, Any]:
    """Run one dialect's policy through its agent; return its requests and replies in tokens."""
    policy, agent_of = DIALECTS[dialect]
    model = Exact(list(policy(shape)), tokenizer)
    agent = replace(agent_of(shape), model=model, budget=Budget(steps=None, repeated=None))
    outcome = agent.attempt(Task("task", shape.question, shape.total, needs_repl=dialect in ("code", "one_shot")))
    if outcome.answer != shape.total:
        raise RuntimeError(f"{dialect} on {shape} answered {outcome.answer!r}, not {shape.total}: {outcome.reason}")
    sizes, written = json.dumps(model.sizes), json.dumps(model.written)
    return {"dialect": dialect, **vars(shape), "requests": sizes, "replies": written}


def record() -> None:
    """Run what the results lack, a row as each ends."""
    RESULTS.parent.mkdir(exist_ok=True)
    done = set[tuple[str, ...]]()
    if RESULTS.exists():
        with RESULTS.open() as file:
            done = {(r["dialect"], r["tools"], r["steps"], r["fan"], r["size"]) for r in csv.DictReader(file)}
    todo = [(s, d) for s in shapes() for d in DIALECTS if (d, *map(str, vars(s).values())) not in done]
    tokenizer = LocalModel("local", context_size=32_768)
    with RESULTS.open("a", newline="") as file:
        writer = csv.DictWriter(
            file, ["dialect", "tools", "steps", "fan", "size", "requests", "replies"], lineterminator="\n"
        )
        if not done:
            writer.writeheader()
        for number, (shape, dialect) in enumerate(todo, 1):
            writer.writerow(run(shape, dialect, tokenizer))
            file.flush()
            if sys.stderr.isatty() or number % 20 == 0:
                print(f"{number} of {len(todo)}", file=sys.stderr)


def read() -> list[dict[str, Any]]:
    """Return the recorded runs, with requests and replies as lists of tokens."""
    with RESULTS.open() as file:
        rows = list(csv.DictReader(file))
    numbers = ("tools", "steps", "fan", "size")
    lists = ("requests", "replies")
    return [
        {"dialect": r["dialect"], **{n: int(r[n]) for n in numbers}, **{n: json.loads(r[n]) for n in lists}}
        for r in rows
    ]


def terms(dialect: str, shape: Mapping[str, Any], t: int) -> list[float]:
    """Return the numbers that a request's tokens are linear in; `t` requests went before it."""
    known: dict[str, int] = {
        "1": 1,
        "tools": shape["tools"],
        "t": t,
        "t*fan": t * shape["fan"],
        "t*size": t * shape["size"],
    }
    known["t*fan*size"] = known["t*fan"] * shape["size"]
    return [float(known[name]) for name in TERMS[dialect]]


def held(row: Mapping[str, Any]) -> bool:
    """Say whether a shape is kept from the fit: those with the middle number of steps or of calls."""
    return row["steps"] == 3 or row["fan"] == 2


def fit(rows: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """Return the coefficients of each dialect, by least squares over all requests of the shapes that are not held."""
    import numpy as np

    found: dict[str, Any] = {}
    for dialect in DIALECTS:
        own = [row for row in rows if row["dialect"] == dialect and not held(row)]
        left = [terms(dialect, row, t) for row in own for t in range(len(row["requests"]))]
        right = [tokens for row in own for tokens in row["requests"]]
        found[dialect] = np.linalg.lstsq(np.array(left), np.array(right, dtype=float), rcond=None)[0]
    return found


def requests_of(dialect: str, shape: Mapping[str, Any]) -> int:
    """Return how many requests the best policy takes."""
    each = {"calls": shape["steps"] * shape["fan"], "react": shape["steps"] * shape["fan"], "one_shot": 0}
    return each.get(dialect, shape["steps"]) + 1


def bill(dialect: str, shape: Mapping[str, Any], fitted: Mapping[str, Any], cached_price: float = 1.0) -> float:
    """Return the input tokens of a whole task by the formula, in tokens of the full price."""
    sizes = [sum(terms(dialect, shape, t) * fitted[dialect]) for t in range(requests_of(dialect, shape))]
    return sizes[-1] + cached_price * sum(sizes[:-1])


#: The formula of all replies together is linear in these.
WRITTEN: Mapping[str, tuple[str, ...]] = {
    "calls": ("1", "steps*fan"),
    "parallel": ("1", "steps*fan"),
    "react": ("1", "steps*fan"),
    "code": ("1", "steps", "steps*fan"),
    "one_shot": ("1", "fan"),
    "nested": ("1", "steps", "steps*fan"),
}
#: What a token of a reply costs in tokens of a prompt, as with most providers.
OUTPUT_PRICE = 5


def written_terms(dialect: str, shape: Mapping[str, Any]) -> list[float]:
    known: dict[str, int] = {
        "1": 1,
        "steps": shape["steps"],
        "fan": shape["fan"],
        "steps*fan": shape["steps"] * shape["fan"],
    }
    return [float(known[name]) for name in WRITTEN[dialect]]


def fit_written(rows: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """Return the coefficients of the tokens of all replies of a task, from the shapes that are not held."""
    import numpy as np

    found: dict[str, Any] = {}
    for dialect in DIALECTS:
        own = [row for row in rows if row["dialect"] == dialect and not held(row)]
        left, right = [written_terms(dialect, row) for row in own], [float(sum(row["replies"])) for row in own]
        found[dialect] = np.linalg.lstsq(np.array(left), np.array(right), rcond=None)[0]
    return found


@dataclass(frozen=True)
class Fitted:
    """The formulas: tokens of a request and of all replies, by dialect."""

    requests: Mapping[str, Any]
    replies: Mapping[str, Any]

    def with_lines(self) -> Fitted:
        """Return the same with tools described to parallel calls by a line each, as they are to code."""
        import numpy as np

        line = self.requests["code"][TERMS["code"].index("tools")]
        parallel = np.where(np.array(TERMS["parallel"]) == "tools", line, self.requests["parallel"])
        return replace(self, requests={**self.requests, "parallel": parallel})

    def cost(self, dialect: str, shape: Mapping[str, Any], cached_price: float, read: bool = False) -> float:
        """Return the cost of a task in prompt tokens; with `read` the model reads all results, in code too."""
        total = bill(dialect, shape, self.requests, cached_price)
        total += OUTPUT_PRICE * sum(written_terms(dialect, shape) * self.replies[dialect])
        if read and dialect in ("code", "nested"):
            shown = [t * shape["fan"] * (shape["size"] + RESULT_TOKENS) for t in range(shape["steps"] + 1)]
            total += shown[-1] + cached_price * sum(shown[:-1])
        return total


#: Tokens of a result beside its words: its fields and their names.
RESULT_TOKENS = 20


def break_even(fitted: Fitted) -> str:
    """Return what code costs as a multiple of parallel calls, by what makes the difference."""
    lines: list[list[str]] = []
    for alike, read, price in itertools.product((False, True), (False, True), (1.0, 0.1)):
        line = ["a line, as code has" if alike else "a schema", "all results" if read else "what code prints"]
        line.append("none" if price == 1 else "a tenth")
        for fan in (1, 2, 5):
            shape: dict[str, Any] = {"tools": 20, "steps": 10, "fan": fan, "size": 100}
            calls = fitted.with_lines() if alike else fitted
            ratio = fitted.cost("code", shape, price, read) / calls.cost("parallel", shape, price)
            line.append(f"{ratio:.2f}")
        lines.append(line)
    columns = ["each tool of the calls is", "the model reads", "cache", "1 call a step", "2 calls", "5 calls"]
    title = "Cost of code (with state) as a multiple of parallel calls: 20 tools, 10 steps, results of 100 words"
    return Table(title, columns, lines, labels=3).to_markdown().strip()


def check(rows: Sequence[Mapping[str, Any]], fitted: Fitted) -> str:
    """Return the formula of each dialect, and its largest error in the bill of a held shape."""
    lines: list[list[str]] = []
    for dialect in DIALECTS:
        own = [row for row in rows if row["dialect"] == dialect and held(row)]
        errors = [abs(bill(dialect, row, fitted.requests) / sum(row["requests"]) - 1) for row in own]
        parts = [
            f"{value:,.1f} {name}".replace(" 1", "", 1) if name == "1" else f"{value:,.2f} {name}"
            for value, name in zip(fitted.requests[dialect], TERMS[dialect], strict=True)
        ]
        said = [abs(sum(written_terms(dialect, r) * fitted.replies[dialect]) / sum(r["replies"]) - 1) for r in own]
        replies = [
            f"{value:,.1f}" if name == "1" else f"{value:,.1f} {name}"
            for value, name in zip(fitted.replies[dialect], WRITTEN[dialect], strict=True)
        ]
        worst = f"{100 * max(errors):.2f} %", f"{100 * max(said):.2f} %"
        lines.append([dialect, " + ".join(parts), worst[0], " + ".join(replies), worst[1]])
    columns = ["dialect", "tokens of request t + 1", "worst bill", "tokens of all replies", "worst"]
    return Table("The formula, and its worst errors on 30 unseen shapes", columns, lines).to_markdown().strip()


def compared(fitted: Mapping[str, Any]) -> str:
    """Return bills of some shapes by dialect, as multiples of parallel calls, with and without a cache."""
    lines: list[list[str]] = []
    for numbers in (
        (5, 1, 1, 10),
        (5, 3, 1, 100),
        (20, 3, 1, 100),
        (20, 3, 5, 100),
        (60, 6, 5, 100),
        (60, 6, 5, 1_000),
    ):
        shape: dict[str, Any] = dict(zip(("tools", "steps", "fan", "size"), numbers, strict=True))
        for price in (1.0, 0.1):
            base = bill("parallel", shape, fitted, price)
            ratios = [f"{bill(dialect, shape, fitted, price) / base:.2f}" for dialect in DIALECTS]
            lines.append([", ".join(map(str, numbers)), "none" if price == 1 else "a tenth", f"{base:,.0f}", *ratios])
    columns = ["tools, steps, fan, words", "cache", "parallel, tokens", *DIALECTS]
    return (
        Table("Input tokens of a task, as multiples of parallel calls", columns, lines, labels=2).to_markdown().strip()
    )


def claims(fitted: Mapping[str, Any]) -> str:
    """Return what others have published, and what the formula says of their case."""

    def saved(dialect: str, tools: int, steps: int, fan: int, size: int, listed: int | None = None) -> str:
        shape: dict[str, Any] = {"tools": tools, "steps": steps, "fan": fan, "size": size}
        calls, code = bill("parallel", shape, fitted), bill(dialect, {**shape, "tools": listed or tools}, fitted)
        return f"{calls:,.0f} to {code:,.0f} tokens, {1 - code / calls:.0%} less"

    lines = [
        [
            "98.7 % fewer tokens (150,000 to 2,000)",
            "Anthropic, a text of 50,000 tokens passed on, 2025",
            f"95 tools, 2 steps, 50,000 words, one program: {saved('one_shot', 95, 2, 1, 50_000)}",
        ],
        [
            "58 % at 96 tools, 92.8 % at 508",
            "Bifrost, Code Mode, 2026",
            f"a line for each of 508 tools: {saved('code', 508, 3, 1, 100)}; "
            f"lines of 20 that were looked up: {saved('code', 508, 3, 1, 100, 20)}",
        ],
        [
            "78.5 % fewer tokens in, 2.2 times as many out",
            "AIMultiple, GPT-4.1, 2025",
            f"60 tools, 1 step: {saved('code', 60, 1, 1, 100)}; a step's code is 2.1 times a call",
        ],
        [
            "about 30 % fewer turns",
            "CodeAct (Wang et al., 2024), smolagents",
            "turns are steps + 1 and not steps x calls + 1: 30 % fewer at 1.5 calls a step",
        ],
    ]
    return Table("Published savings", ["claim", "by", "the formula"], lines, labels=3).to_markdown().strip()


def draw(fitted: Mapping[str, Any], path: Path) -> None:
    """Draw the bill of a task by fan-out, for few tools and for many."""
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    colours = ["#0072B2", "#56B4E9", "#CC79A7", "#009E73", "#E69F00", "#D55E00"]
    figure, axes = plt.subplots(1, 2, figsize=(9, 3.8), sharex=True)
    for ax, tools in zip(axes, (5, 60), strict=True):
        fans = list(range(1, 11))
        for dialect, colour in zip(DIALECTS, colours, strict=True):
            shapes_at: list[dict[str, Any]] = [{"tools": tools, "steps": 3, "fan": fan, "size": 100} for fan in fans]
            ax.plot(fans, [bill(dialect, shape, fitted) for shape in shapes_at], color=colour, label=dialect)
        ax.set_yscale("log")
        ax.set_title(f"{tools} tools, 3 dependent steps, results of 100 words", fontsize=10)
        ax.set_xlabel("independent calls in each step")
    axes[0].set_ylabel("input tokens of the whole task")
    axes[1].legend(frameon=False, loc="center left", bbox_to_anchor=(1, 0.5))
    figure.tight_layout()
    path.parent.mkdir(exist_ok=True)
    figure.savefig(path, dpi=150)


def main() -> None:
    record()
    rows = read()
    fitted = Fitted(fit(rows), fit_written(rows))
    text = "\n\n".join([check(rows, fitted), break_even(fitted), claims(fitted.requests), compared(fitted.requests)])
    write_between(HERE / "tables.md", "break_even", text)
    draw(fitted.requests, HERE / "figures" / "break_even.png")
    print(text)


if __name__ == "__main__":
    main()
