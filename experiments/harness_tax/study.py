"""What a coding agent adds to every request, by cause: real agents, unchanged, on one scripted task.

    python experiments/harness_tax/study.py [--agents pi,codex] [--conditions bare-10] [--cache FOLDER] [--again]
    python experiments/harness_tax/study.py --installed claude [--tokens 60000]

Installs the agents into the cache folder, runs what is missing in `results/`, and writes the tables and figures.  It
can be stopped and started again at any time.  `--installed` runs the task once with the agent that is on PATH and
prints where its tokens are; it installs nothing and keeps no result.  The runs have no network but the loopback where
the system allows that (`unshare`); the results say whether that was so.
"""

from __future__ import annotations

import argparse
import fcntl
import json
import os
import shutil
import socket
import struct
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

sys.path.append(str(Path(__file__).resolve().parents[1] / "peers"))
sys.path.append(str(Path(__file__).resolve().parents[2]))  # it is not installed

import figures
import install
import provider
import workspace
from agents import AGENTS, Agent, Place
from breaks import breaks_of
from cache import RULES, simulate
from counter import FileCounter
from requests_sent import Sent, broken, timeline
from script import ScriptedAgent

from rlm_loop import Budget
from rlm_loop.cli.main import main as rlm_loop
from rlm_loop.meter import MeteredCall, metered_endpoint
from rlm_loop.models import ModelNotFound, weights
from rlm_loop.traces import read

HERE = Path(__file__).resolve().parent
RESULTS = HERE / "results"
RUNS, REQUESTS = RESULTS / "runs.jsonl", RESULTS / "requests.jsonl"
#: Seconds that one run may take.
PATIENCE = 240.0
#: Why a condition does not concern an agent.
NOT_FOR = ("takes no MCP server", "reads no memory file")
_ALONE = "HARNESS_TAX_ALONE"  # set where the study runs in a network of its own


@dataclass(frozen=True)
class Condition:
    """`memory` puts a memory file of marked rules into the folder, `mcp` starts a server of ten tools, `elsewhere` is
    another task in a folder of another name."""

    name: str
    turns: int
    memory: bool = False
    mcp: bool = False
    elsewhere: bool = False

    @property
    def key(self) -> str:
        return f"{self.name}-{self.turns}"


CONDITIONS = (
    Condition("bare", 10),
    Condition("memory", 10, memory=True),
    Condition("mcp", 10, mcp=True),
    Condition("bare", 25),
    Condition("elsewhere", 10, elsewhere=True),
)


def run(
    agent: Agent, condition: Condition, cache: Path, counter: Any, found: install.Found, tokens: int | None = None
) -> tuple[dict[str, Any], list[dict[str, Any]]]:
    """Return the row of a run and the rows of its requests; the meter refuses requests once `tokens` are spent."""
    row = {"agent": agent.name, "label": agent.label, "package": agent.package, "version": found.version}
    row |= {"condition": condition.name, "turns": condition.turns, "loopback_only": bool(os.environ.get(_ALONE))}
    if condition.mcp and not agent.mcp:
        return {**row, "error": NOT_FOR[0]}, []
    if condition.memory and not agent.memory:
        return {**row, "error": NOT_FOR[1]}, []
    traces = cache / "traces" / f"{agent.name}-{condition.key}"
    shutil.rmtree(traces, ignore_errors=True)
    with _folders(cache, "depot" if condition.elsewhere else "shop") as (home, work):
        workspace.make(work, memory=agent.memory if condition.memory else "")
        task = workspace.OTHER_TASK if condition.elsewhere else workspace.TASK
        model = ScriptedAgent(work, condition.turns, task)
        known = {"task": [task], "scaffold:memory/marked": [workspace.MEMORY]}
        with (
            provider.serve(model, counter) as address,
            metered_endpoint(
                forward=address, out=traces, counter=counter, known=known, budget=Budget(tokens=tokens)
            ) as url,
        ):
            server = [sys.executable, str(HERE / "stock_server.py")] if condition.mcp else []
            place = Place(found.bin, found.python, home, work, url.session(agent.name).root, task, server)
            began = time.perf_counter()
            error = _play(agent, place, traces, found.path)
            seconds = time.perf_counter() - began
        fixed = workspace.fixed(work)
    ledger, calls = url.meter.figures.sessions.get(agent.name, (None, []))
    if ledger is None or not ledger.calls:
        return {**row, "error": error or "it sent no request"}, []
    refused = [call for call in calls if call.call is None]
    error = error or (f"refused: {refused[0].error}" if refused else "")
    error = error or ("" if model.finished and fixed else "ended before the script did")
    requests = list(_requests(ledger, calls, traces / f"{agent.name}.jsonl"))
    main = [r for r in requests if r["main"]]
    row |= {
        "finished": model.finished,
        "fixed": fixed,
        "error": error,
        "seconds": round(seconds, 1),
        "requests": len(requests),
        "main_turns": len(main),
        "input_tokens": sum(r["input_tokens"] for r in requests),
        "output_tokens": sum(r["output_tokens"] for r in requests),
        "tools": _details(ledger, main[0]["call"], "tool_schema"),
        "details": _details(ledger, main[0]["call"], None),
        "breaks": _breaks(traces / f"{agent.name}.jsonl"),
        "common": _common(cache / "traces", agent.name) if condition.elsewhere else None,
    }
    return row, requests


@contextmanager
def _folders(cache: Path, name: str) -> Iterator[tuple[Path, Path]]:
    """The throw-away home and working folder of one run: always at the same place, so that paths count alike."""
    made = cache / "run"
    shutil.rmtree(made, ignore_errors=True)
    home, work = made / "home", made / name
    home.mkdir(parents=True)
    work.mkdir()
    try:
        yield home, work
    finally:
        shutil.rmtree(made, ignore_errors=True)


def _play(agent: Agent, place: Place, out: Path, path: str) -> str:
    """Run the agent's commands.  Gives what went wrong, "" for nothing."""
    env = {"PATH": path, "HOME": str(place.home), "LANG": "C.UTF-8", "TERM": "dumb", "DO_NOT_TRACK": "1"}
    env |= agent.env(place)
    out.mkdir(parents=True, exist_ok=True)
    for command in agent.begin(place):
        apart = ["unshare", "--pid", "--fork", "--kill-child", "--mount-proc", "--"] if os.environ.get(_ALONE) else []
        with (out / "output.txt").open("ab") as log:
            process = subprocess.Popen(
                [*apart, *command], cwd=place.work, env=env, stdin=subprocess.DEVNULL, stdout=log, stderr=log
            )
            try:
                status = process.wait(PATIENCE)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()
                return f"not finished after {PATIENCE:g} s"
        if status:
            said = (out / "output.txt").read_text(errors="replace").strip().splitlines() or ["it said nothing"]
            return f"exit status {status}: {said[-1][:200]}"
    return ""


def _requests(ledger: Any, calls: Sequence[MeteredCall], trace: Path) -> Iterator[dict[str, Any]]:
    """The rows of the requests that were answered: what they cost by cause and what a cache would have held."""
    record = read(trace)
    hits = {name: {one.call: one for one in simulate(record, rules)} for name, rules in RULES.items()}
    turns: dict[str, int] = {}
    for call in calls:
        turns[call.node] = max(turns.get(call.node, 0), call.turn)
    most = max(turns, key=lambda node: turns[node])
    by_number = {call.call: call for call in ledger.calls}
    for call in calls:
        if call.call is None:
            continue
        causes: dict[str, int] = {}
        resent = 0
        for row in by_number[call.call].rows:
            causes[row.cause] = causes.get(row.cause, 0) + row.tokens
            resent += row.resent
        yield {
            "call": call.call,
            "node": call.node,
            "main": call.node == most,
            "turn": call.turn,
            "input_tokens": call.input_tokens,
            "output_tokens": call.output_tokens,
            "causes": dict(sorted(causes.items())),
            "resent": resent,
            "hits": {name: reads[call.call].hit for name, reads in hits.items()},
            "written": {name: reads[call.call].written for name, reads in hits.items()},
        }


def _details(ledger: Any, number: int, cause: str | None) -> dict[str, int]:
    """Tokens of one request by what is known more finely: of the tools by name, of everything else by cause/detail."""
    found: dict[str, int] = {}
    for row in next(call for call in ledger.calls if call.call == number).rows:
        if (cause is None) == (row.cause == "tool_schema"):
            continue
        name = row.detail if cause else f"{row.cause}/{row.detail}".rstrip("/")
        found[name] = found.get(name, 0) + row.tokens
    return found


def _breaks(trace: Path) -> list[dict[str, Any]]:
    """Where the prefix broke, without the text that stands there: it is another's."""
    found = [asdict(one) for one in breaks_of(read(trace))]
    return [{name: value for name, value in one.items() if name != "text"} for one in found]


def _common(traces: Path, name: str) -> dict[str, Any] | None:
    """What the first request of another task elsewhere has in common with that of the bare run, from the beginning: in
    tokens, and the cause of the first text that differs."""
    pair: list[Sent] = []
    for key in ("bare-10", "elsewhere-10"):
        path = traces / f"{name}-{key}" / f"{name}.jsonl"
        if not path.exists():
            return None
        by_node: dict[str, list[Sent]] = {}
        for sent, _ in timeline(read(path)):
            by_node.setdefault(sent.node, []).append(sent)
        pair.append(max(by_node.values(), key=len)[0])
    found = broken(*pair)
    if found is None:
        return {"tokens": pair[0].tokens, "of": pair[1].tokens, "broken_by": ""}
    return {"tokens": pair[0].tokens - found.lost, "of": pair[1].tokens, "broken_by": found.cause}


def _rows(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []


def _who(row: Mapping[str, Any]) -> tuple[Any, ...]:
    return row["agent"], row["version"], row["condition"], row["turns"]


def keep(row: dict[str, Any], requests: Sequence[dict[str, Any]]) -> None:
    """Write a run in place of an earlier one of the same agent and condition."""
    same = (row["agent"], row["condition"], row["turns"])
    order = {agent.name: number for number, agent in enumerate(AGENTS)}
    for path, new in (
        (RUNS, [row]),
        (REQUESTS, [{**dict(zip(("agent", "condition", "turns"), same, strict=True)), **r} for r in requests]),
    ):
        rows = [r for r in _rows(path) if (r["agent"], r["condition"], r["turns"]) != same] + list(new)
        rows.sort(key=lambda r: (order.get(r["agent"], 99), r["turns"], r["condition"], r.get("call", 0)))
        path.parent.mkdir(exist_ok=True)
        path.with_suffix(".new").write_text("".join(json.dumps(r) + "\n" for r in rows))
        path.with_suffix(".new").replace(path)


def _alone() -> bool:
    """Whether this process has a network of its own now: it starts itself anew in one where the system allows it."""
    if os.environ.get(_ALONE):
        with socket.socket() as any_socket:  # up with the loopback, the only interface there is
            fcntl.ioctl(any_socket, 0x8914, struct.pack("16sH14x", b"lo", 0x41))
        return True
    works = ["unshare", "-rn", "unshare", "--pid", "--fork", "--kill-child", "--mount-proc", "true"]
    if shutil.which("unshare") is None or subprocess.run(works, capture_output=True, check=False).returncode:
        return False
    return os.execvpe("unshare", ["unshare", "-rn", sys.executable, *sys.argv], {**os.environ, _ALONE: "1"})


def _leave_the_network() -> None:
    if not _alone():
        print("no network of its own (`unshare` is not allowed): the agents could reach the network", file=sys.stderr)


def installed(name: str, cache: Path, tokens: int | None) -> str:
    """Run the task with the agent that is installed here and print where its tokens are.  Gives what went wrong."""
    _leave_the_network()
    try:
        agent, found = install.on_path(name)
        counter = FileCounter(weights.path("local"))
    except (LookupError, ModelNotFound) as error:
        return str(error)
    where = found.bin / agent.program if agent.program else found.python
    print(f"{agent.label} {found.version} ({where}) does a scripted bug fix in a throw-away home", flush=True)
    own = cache / "installed"
    row, requests = run(agent, CONDITIONS[0], own, counter, found, tokens)
    traces = own / "traces" / f"{agent.name}-{CONDITIONS[0].key}"
    if row["error"]:
        return f"{agent.label} did not come to its end: {row['error']} (what it said is in {traces / 'output.txt'})"
    first = next(r for r in requests if r["main"])
    known = {r["agent"]: r for r in _rows(REQUESTS) if r["main"] and (r["turn"], r["condition"]) == (1, "bare")}
    print(
        f"it did; its first request has {first['input_tokens']:,} tokens, all {len(requests)} {row['input_tokens']:,}"
    )
    if agent.name in known:
        version, tokens = install.version_of(agent), known[agent.name]["input_tokens"]
        print(f"the first request of {version} had {tokens:,} (results/)")
    rlm_loop(["meter", "--show", str(traces)])
    return ""


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--agents", default="", help="names, separated by commas (default: all)")
    parser.add_argument("--conditions", default="", help="such as bare-10,mcp-10 (default: all)")
    parser.add_argument("--cache", type=Path, default=install.CACHE, help="folder of what is installed and of traces")
    parser.add_argument("--installed", default="", metavar="NAME", help="the agent on PATH, such as claude or pi")
    parser.add_argument("--tokens", type=int, help="with --installed: the meter refuses requests after so many tokens")
    parser.add_argument("--again", action="store_true", help="also what is in the results already")
    options = parser.parse_args()
    if options.installed:
        sys.exit(installed(options.installed, options.cache, options.tokens) or 0)
    names = options.agents.split(",") if options.agents else [agent.name for agent in AGENTS]
    keys = options.conditions.split(",") if options.conditions else [condition.key for condition in CONDITIONS]
    chosen = [agent for agent in AGENTS if agent.name in names]
    if not os.environ.get(_ALONE):
        for agent in chosen:
            install.pinned(agent, options.cache)
    _leave_the_network()
    done = {_who(row) for row in _rows(RUNS) if row.get("error") in ("", *NOT_FOR)}
    counter = FileCounter(weights.path("local"))
    for agent in chosen:
        for condition in CONDITIONS:
            who = (agent.name, install.version_of(agent), condition.name, condition.turns)
            if condition.key not in keys or (who in done and not options.again):
                continue
            row, requests = run(agent, condition, options.cache, counter, install.pinned(agent, options.cache))
            keep(row, requests)
            first = next((r["input_tokens"] for r in requests if r["main"]), None)
            said = row["error"] or f"fixed {row['fixed']}, {row['requests']} requests, first {first:,} tokens"
            print(f"{agent.label}, {condition.key}: {said}", flush=True)
    figures.write()


if __name__ == "__main__":
    main()
