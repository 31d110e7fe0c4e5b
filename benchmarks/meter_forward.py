"""What the meter adds in front of a provider: milliseconds to the first byte and the last, beside the direct address.

    python benchmarks/meter_forward.py [--requests 200] [--at-once 32] [--kilobytes 100] [--json FILE]

A scripted provider in this process streams 50 events, 100 a second; the meter is a process of its own, as in use.
Requests go to the provider directly and through the meter by turns, so both see the same machine; then `--at-once` of
them go together.  Measure on a quiet machine.
"""

from __future__ import annotations

import argparse
import http.client
import json
import re
import signal
import statistics
import subprocess
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

EVENTS = 50
USAGE = {"prompt_tokens": 1000, "completion_tokens": EVENTS, "total_tokens": 1000 + EVENTS}


class Provider(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True

    def do_POST(self) -> None:
        self.rfile.read(int(self.headers["Content-Length"]))
        self.send_response_only(200)
        self.send_header("Content-Type", "text/event-stream")
        self.send_header("Transfer-Encoding", "chunked")
        self.end_headers()
        for i in range(EVENTS):
            usage = {"usage": USAGE} if i == EVENTS - 1 else {}
            data = {"choices": [{"index": 0, "delta": {"content": f"{time.perf_counter()} "}}], **usage}
            event = f"data: {json.dumps(data)}\n\n".encode()
            self.wfile.write(b"%x\r\n%b\r\n" % (len(event), event))
            time.sleep(0.01)  # as a quick model writes
        self.wfile.write(b"0\r\n\r\n")

    def log_message(self, format: str, *args: Any) -> None:
        """Nothing."""


class Server(ThreadingHTTPServer):
    daemon_threads = True
    request_queue_size = 256


def ask(host: str, body: bytes) -> tuple[float, float, float]:
    """Seconds to the first byte, to the last, and from the provider's sending of the first event to its arrival."""
    connection = http.client.HTTPConnection(host, timeout=120)
    connection.connect()
    start = time.perf_counter()
    connection.request("POST", "/v1/chat/completions", body, {"Content-Type": "application/json"})
    answer = connection.getresponse()
    first = answer.read1()
    came = time.perf_counter()
    rest = answer.read()
    whole = time.perf_counter() - start
    connection.close()
    assert b"usage" in rest
    sent = float(json.loads(first.partition(b"\n")[0][6:])["choices"][0]["delta"]["content"])
    return came - start, whole, came - sent


def summed(found: list[tuple[float, float, float]]) -> dict[str, float]:
    """Milliseconds: medians, and the 95th percentile of the way of the first byte."""
    first, whole, way = ([1000 * x for x in column] for column in zip(*found))
    return {
        "first": statistics.median(first),
        "whole": statistics.median(whole),
        "way": statistics.median(way),
        "way_p95": statistics.quantiles(way, n=20)[-1],
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--requests", type=int, default=200, help="requests one after the other (default 200)")
    parser.add_argument("--at-once", type=int, default=32, help="streams under way together (default 32)")
    parser.add_argument("--kilobytes", type=int, default=100, help="size of a request's body (default 100)")
    parser.add_argument("--json", type=Path, help="write the figures to this file, too")
    options = parser.parse_args()
    said = [{"role": "user", "content": "word " * (200 * options.kilobytes)}]
    body = json.dumps({"model": "m", "stream": True, "messages": said}).encode()
    server = Server(("127.0.0.1", 0), Provider)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    direct = f"127.0.0.1:{server.server_address[1]}"
    rows: dict[str, dict[str, float]] = {}
    command = [sys.executable, "-m", "rlm_loop.cli.main", "meter", "--forward", f"http://{direct}", "--port", "0"]
    with subprocess.Popen([*command, "--json"], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as meter:
        assert meter.stderr is not None
        address = re.search(r" is at http://([\d.]+:\d+)", meter.stderr.readline())
        assert address is not None
        metered = address[1]
        for host in (direct, metered) * 5:
            ask(host, body)
        found: dict[str, list[tuple[float, float, float]]] = {"direct": [], "metered": []}
        for _ in range(options.requests):
            found["direct"].append(ask(direct, body))
            found["metered"].append(ask(metered, body))
        rows |= {name: summed(times) for name, times in found.items()}
        for name, host in (("direct", direct), ("metered", metered)):
            with ThreadPoolExecutor(options.at_once) as pool:
                at_once = list(pool.map(lambda _, to=host: ask(to, body), range(4 * options.at_once)))
            rows[f"{name}, {options.at_once} at once"] = summed(at_once)
        meter.send_signal(signal.SIGINT)
        shown, said = meter.communicate()
        assert shown, said
        total = json.loads(shown)
    server.shutdown()
    server.server_close()
    asked = 5 + options.requests + 4 * options.at_once
    assert (total["served"], total["usage"]["input_tokens"]) == (asked, 1000 * asked), "every stream was read"
    print(f"{options.requests} requests of {len(body):,} bytes, streams of {EVENTS} events; milliseconds")
    print(f"{'':<24}{'to the first byte':>18}{'whole':>10}{'first event on its way':>24}{'(p95)':>10}")
    for name, row in rows.items():
        print(f"{name:<24}{row['first']:>18.2f}{row['whole']:>10.1f}{row['way']:>24.2f}{row['way_p95']:>10.2f}")
    added = rows["metered"]["first"] - rows["direct"]["first"]
    ratio = rows["metered"]["whole"] / rows["direct"]["whole"]
    print(f"the meter adds {added:.2f} ms to the first byte; a whole reply takes {ratio:.3f} times as long")
    if options.json:
        options.json.write_text(json.dumps({"python": sys.version.split()[0], "ms": rows}, indent=1) + "\n")


if __name__ == "__main__":
    main()
