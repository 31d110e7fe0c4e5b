"""What the meter itself costs: milliseconds a request over HTTP, with a model that answers at once.

    python benchmarks/meter.py [--requests 300] [--json FILE]

Measured at the meter (arrival of the request line to the end of the answer, the model excluded: what must not be
taken for harness time) and at a bare client on the same kept-alive connection (which includes the client's own work).
The last line is what attribution costs for a real tokenizer, if the small local model is here.  Measure on a quiet
machine.
"""

from __future__ import annotations

import argparse
import http.client
import json
import statistics
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from rlm_loop.meter import metered_endpoint
from rlm_loop.models import ScriptedModel

SMALL = [{"role": "system", "content": "You are helpful. " * 10}, {"role": "user", "content": "Go on. " * 20}]


def conversation(turns: int) -> list[dict[str, str]]:
    """A prompt of that many turns, about 1,000 characters each."""
    said = list(SMALL)
    for i in range(turns):
        said.append({"role": "assistant", "content": f"```python\nprint({i})\n```\n" + f"# thought {i}\n" * 40})
        said.append({"role": "user", "content": f"Output {i}:\n" + f"line {i} of the output\n" * 20})
    return said


def measure(requests: int, grow: bool, out: Path | None) -> dict[str, float]:
    """Milliseconds a request: the median at the meter and at the client."""
    model = ScriptedModel([f"reply {i}" for i in range(requests)])
    at_client: list[float] = []
    with metered_endpoint(model, out=out) as url:
        connection = http.client.HTTPConnection(url.split("/")[2])
        whole = conversation(requests)
        for i in range(requests):
            body = json.dumps({"model": "m", "messages": whole[: 2 + 2 * i] if grow else SMALL}).encode()
            start = time.perf_counter()
            connection.request("POST", "/v1/chat/completions", body, {"Content-Type": "application/json"})
            connection.getresponse().read()
            at_client.append(time.perf_counter() - start)
        connection.close()
    own = [call.meter_seconds for call in url.meter.calls]
    spread = statistics.quantiles(own, n=20)
    return {
        "meter": 1000 * statistics.median(own),
        "meter_p95": 1000 * spread[-1],
        "client": 1000 * statistics.median(at_client),
    }


def attribution() -> dict[str, float] | None:
    """Share of a local model call's time that counting takes, for a prompt of some thousand characters."""
    from rlm_loop.messages import Prompt, say
    from rlm_loop.models import LocalModel
    from rlm_loop.models.base import ModelError

    model = LocalModel("smollm2-135m", context_size=4096, max_tokens=32)
    try:
        model.load()
    except ModelError as error:
        print(f"attribution is not measured: {error}")
        return None
    prompt = Prompt(tuple(say("user" if i % 2 == 0 else "assistant", f"text {i} " * 60, "task") for i in range(9)))
    start = time.perf_counter()
    model.measure(prompt)
    counted = time.perf_counter() - start
    took = model.complete(prompt).seconds
    return {"counting": 1000 * counted, "call": 1000 * took, "share": counted / took}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--requests", type=int, default=300, help="requests of each kind (default 300)")
    parser.add_argument("--json", type=Path, help="write the figures to this file, too")
    options = parser.parse_args()
    rows: dict[str, Any] = {}
    print(f"{options.requests} requests each; milliseconds")
    print(f"{'':<44}{'meter (median)':>16}{'meter (p95)':>14}{'client (median)':>18}")
    with tempfile.TemporaryDirectory() as folder:
        for label, grow, out, count in (
            ("small requests", False, None, options.requests),
            ("small requests, traces on disk", False, Path(folder) / "a", options.requests),
            ("25 turns that grow, traces on disk", True, Path(folder) / "b", 25),
        ):
            measure(min(count, 20), grow, None if out is None else out / "warm")
            row = rows[label] = measure(count, grow, None if out is None else out / "run")
            print(f"{label:<44}{row['meter']:>16.2f}{row['meter_p95']:>14.2f}{row['client']:>18.2f}")
    if (found := attribution()) is not None:
        rows["attribution"] = found
        print(f"attribution: {found['counting']:.1f} ms of a call of {found['call']:.0f} ms ({found['share']:.1%})")
    if options.json:
        options.json.write_text(json.dumps({"python": sys.version.split()[0], "ms": rows}, indent=1) + "\n")


if __name__ == "__main__":
    main()
