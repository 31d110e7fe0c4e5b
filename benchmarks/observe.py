"""Does a run arrive whole in Phoenix and in MLflow, and what do their pages show?

    uv venv phoenix && uv pip install --python phoenix/bin/python arize-phoenix
    uv venv mlflow && uv pip install --python mlflow/bin/python mlflow
    python benchmarks/observe.py --phoenix phoenix/bin/python --mlflow mlflow/bin/python [--pictures docs]

Starts each server on the loopback, sends a recorded run with three sub-agents and a sub-call to its OTLP endpoint,
twice, reads the run back through the server's own client, and compares it with the trace: spans and their parents,
errors, the messages of every request and reply, input and output tokens of each call and their sums.  Ends with 1 where
anything differs.  With `--pictures` it also takes a picture of the page of the run.  Needs the extra `otel`, for
pictures Chromium and pillow.
"""

from __future__ import annotations

import argparse
import contextlib
import io
import json
import os
import socket
import subprocess
import sys
import tempfile
import time
import urllib.request
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from rlm_loop.formats.traces import conversation_of, send_trace
from rlm_loop.formats.traces.otel import spans_of
from rlm_loop.traces.reader import read

ROOT = Path(__file__).parents[1]
GOLDEN = ROOT / "tests/golden/tool_loop_sub_agents.jsonl"

#: Run by the server's own interpreter, with its address and the trace's id; prints what it holds, as JSON.
PHOENIX = """
import json, sys
from importlib.metadata import version
from phoenix.client import Client
client = Client(base_url=sys.argv[1])
def said(found, at):
    count = len({name.split(".")[2] for name in found if name.startswith(at + ".")})
    return [found.get(f"{at}.{n}.message.content") or "" for n in range(count)]
spans = []
for span in client.spans.get_spans(project_identifier="default", limit=1000):
    found = span["attributes"]
    tokens = [found.get(f"llm.token_count.{kind}") for kind in ("prompt", "completion")]
    words = [said(found, "llm.input_messages"), said(found, "llm.output_messages")]
    error = span["status_message"] if span["status_code"] == "ERROR" else None
    spans.append([span["context"]["span_id"], span["parent_id"], span["name"], error, tokens, words])
[trace] = client.traces.get_traces(project_identifier="default")
totals = [trace["token_count_prompt"], trace["token_count_completion"]]
print(json.dumps({"version": version("arize-phoenix"), "spans": spans, "totals": totals}))
"""
MLFLOW = """
import json, sys
import mlflow
mlflow.set_tracking_uri(sys.argv[1])
def said(messages):
    return ["".join(p.get("content", p.get("response")) or "" for p in m["parts"]) for m in messages]
spans = []
trace = mlflow.get_trace("tr-" + sys.argv[2])
for span in trace.data.spans:
    used = span.get_attribute("mlflow.chat.tokenUsage") or {}
    chat = span.span_type == "LLM"
    words = [said(span.inputs), said(span.outputs)] if chat else [[], []]
    error = span.status.description if span.status.status_code.value == "ERROR" else None
    tokens = [used.get("input_tokens"), used.get("output_tokens")]
    spans.append([span.span_id, span.parent_id, span.name, error, tokens, words])
totals = [trace.info.token_usage[name] for name in ("input_tokens", "output_tokens")]
print(json.dumps({"version": mlflow.__version__, "spans": spans, "totals": totals}))
"""


@contextlib.contextmanager
def phoenix(python: Path, folder: Path) -> Iterator[str]:
    """Phoenix on a free port: its address."""
    port, other = free_port(), free_port()
    places = {"PHOENIX_WORKING_DIR": str(folder), "PHOENIX_HOST": "127.0.0.1", "PHOENIX_PORT": str(port)}
    quiet = {"PHOENIX_GRPC_PORT": str(other), "PHOENIX_TELEMETRY_ENABLED": "false"}
    with served([str(python.parent / "phoenix"), "serve"], {**places, **quiet}, port, folder) as address:
        yield address


@contextlib.contextmanager
def mlflow(python: Path, folder: Path) -> Iterator[str]:
    """MLflow on a free port, with a database of its own: its address."""
    port = free_port()
    store = ["--backend-store-uri", f"sqlite:///{folder}/mlflow.db", "--default-artifact-root", str(folder / "files")]
    command = [str(python.parent / "mlflow"), "server", "--host", "127.0.0.1", "--port", str(port), *store]
    lean = {"MLFLOW_DISABLE_TELEMETRY": "true", "MLFLOW_SERVER_ENABLE_JOB_EXECUTION": "false"}
    with served([*command, "--workers", "1"], lean, port, folder) as address:
        yield address


@contextlib.contextmanager
def served(command: list[str], settings: Mapping[str, str], port: int, folder: Path) -> Iterator[str]:
    address = f"http://127.0.0.1:{port}"
    with (folder / "server.log").open("wb") as log:
        process = subprocess.Popen(
            command, env={**os.environ, **settings}, cwd=folder, stdout=log, stderr=log, start_new_session=True
        )
        try:
            for _ in range(600):
                with contextlib.suppress(OSError):
                    urllib.request.urlopen(address, timeout=5).close()
                    break
                if process.poll() is not None:
                    raise SystemExit(f"{command[0]} ended: {(folder / 'server.log').read_text()[-2000:]}")
                time.sleep(0.2)
            yield address
        finally:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(process.pid, 15)
            process.wait(30)


def free_port() -> int:
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        return int(found.getsockname()[1])


def expected() -> tuple[str, list[list[Any]], list[Any]]:
    """The trace's id, what each span should be, and the sums."""
    conversation = conversation_of(read(GOLDEN))
    spans = spans_of(conversation)
    asked = {(step.started, step.turn): step for step in conversation.steps}
    rows: list[list[Any]] = []
    for span in spans:
        step = asked[(span.start, span.attributes["rlm_loop.turn"])] if span.kind == "client" else None
        used = None if step is None else step.usage
        tokens = [None, None] if used is None else [used.input_tokens, used.output_tokens]
        words = [[], []] if step is None or step.reply is None else [[m.text for m in step.messages], [step.reply.text]]
        rows.append([span.id, span.parent, span.name, None if span.error is None else span.error[1], tokens, words])
    return spans[0].trace, rows, [conversation.usage.input_tokens, conversation.usage.output_tokens]


def compared(python: Path, address: str, script: str, headers: dict[str, str]) -> bool:
    """Send the run, read it back by the server's own client; prints what differs."""
    trace, rows, totals = expected()
    for _ in range(2):  # sent again, it is the same run
        send_trace(GOLDEN, address, headers=headers)
    time.sleep(2)  # the servers store in the background
    done = subprocess.run([python, "-c", script, address, trace], capture_output=True, text=True)
    if done.returncode:
        raise SystemExit(done.stderr)
    found = json.loads(done.stdout.splitlines()[-1])
    theirs = {row[0]: row for row in found["spans"]}
    ours = {row[0]: row for row in rows}
    wrong = [f"{ours.get(id)} is {theirs.get(id)}" for id in {*ours, *theirs} if ours.get(id) != theirs.get(id)]
    wrong += [f"the sums {totals} are {found['totals']}"] * (totals != found["totals"])
    print(
        f"{found['version']}: {len(theirs)} spans, {sum(map(bool, (r[4][0] for r in theirs.values())))} calls,", end=" "
    )
    print(f"{found['totals'][0]:,} input and {found['totals'][1]:,} output tokens, {len(wrong)} differences")
    print(*wrong, sep="\n", end="\n" * bool(wrong))
    return not wrong


def picture(address: str, ready: str, then: list[str], out: Path, box: tuple[int, int, int, int]) -> None:
    """A picture of a page once a condition holds and what is clicked was clicked, in 128 colours."""
    sys.path.insert(0, str(ROOT / "tests"))
    from browser import Browser
    from PIL import Image

    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as profile, Browser(Path(profile)) as browser:
        browser.open(address, width=1500)
        browser.until(ready)
        for script in then:
            time.sleep(1.5)
            browser.value(script)
        time.sleep(2.5)
        image = Image.open(io.BytesIO(browser.picture())).convert("RGB").crop(box)
    image.quantize(128, dither=Image.Dither.NONE).save(out, optimize=True)
    print(f"{out}: {out.stat().st_size / 1000:.0f} kB")


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--phoenix", type=Path, help="the interpreter of an environment with arize-phoenix")
    parser.add_argument("--mlflow", type=Path, help="the interpreter of an environment with mlflow")
    parser.add_argument("--pictures", type=Path, help="the folder that pictures go to")
    options = parser.parse_args()
    trace, rows, _ = expected()
    last = next(row for row in reversed(rows) if row[2].startswith("chat") and row[1] == rows[0][0])[0]
    right = True
    if options.phoenix:
        with tempfile.TemporaryDirectory() as folder, phoenix(options.phoenix.absolute(), Path(folder)) as address:
            print("arize-phoenix", end=" ")
            right &= compared(options.phoenix, address, PHOENIX, {})
            if options.pictures:
                page, there = f"{address}/redirects/spans/{last}", "document.body.innerText.includes('llm_query')"
                picture(page, there, [], options.pictures / "phoenix.png", (374, 0, 1500, 900))
    if options.mlflow:
        with tempfile.TemporaryDirectory() as folder, mlflow(options.mlflow.absolute(), Path(folder)) as address:
            print("mlflow", end=" ")
            right &= compared(options.mlflow, address, MLFLOW, {"x-mlflow-experiment-id": "0"})
            if options.pictures:
                page = f"{address}/#/experiments/0/traces?selectedEvaluationId=tr-{trace}"
                there = "document.body.innerText.includes('chat scripted')"
                click = (
                    "[...document.querySelectorAll('span, div')].filter(e => !e.children.length && "
                    "e.textContent === 'chat scripted').at(-1).click()"
                )
                picture(page, there, [click], options.pictures / "mlflow.png", (0, 0, 1048, 900))
    return 0 if right else 1


if __name__ == "__main__":
    sys.exit(main())
