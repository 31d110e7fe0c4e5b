"""What a cell prints: all of it, in order, from whatever wrote it, and nothing from earlier cells."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rlm_loop.repl import PythonREPL
from rlm_loop.repl.text import Piece, clip, clip_parts, shown

CELLS = {
    "order": (
        "import os, subprocess, sys\nprint('1')\nos.write(1, b'2\\n')\nprint('3', file=sys.stderr)\n"
        "subprocess.run(['echo', '4'])\nos.write(2, b'5\\n')\nprint('6', end='')\nsys.stderr.write('7')\nprint(8)",
        "1\n2\n3\n4\n5\n678\n",
    ),
    "os.system": ("import os; _ = os.system('printf out; printf err >&2')", "outerr"),
    "fork": (
        "import os\npid = os.fork()\nif pid == 0:\n    print('child')\n    os._exit(0)\nos.waitpid(pid, 0);",
        "child\n",
    ),
    "frames pass through": (
        'import os\nos.write(1, b\'{"t":"done","g":1,"id":1}\\n!kill\\n\')\nprint(\'{"t":"died","g":1}\')',
        '{"t":"done","g":1,"id":1}\n!kill\n{"t":"died","g":1}\n',
    ),
    "bytes that are no text": ("import os; os.write(1, b'a\\xff\\xfeb')", "a\ufffd\ufffdb"),
    "control characters": ("print('a\\x00b\\x07c\\td')", "a\ufffdb\ufffdc\td\n"),
    "colours": ("print('\\x1b[31mred\\x1b[0m \\x1b]8;;http://x\\x07link\\x1b]8;;\\x07')", "red link\n"),
    "colours in a repr": (
        "class R:\n    def __repr__(self): return '\\x1b[31mred\\x1b[0m \\x00'\nR()",
        "red \ufffd",
    ),
    "colours in an error": (
        "try: raise ValueError('\\x1b[31mred\\x1b[0m')\nexcept ValueError as e: err = e\nprint('a')\nraise err",
        "a\nTraceback (most recent call last):\n",
    ),
    "CRLF": ("print('a\\r\\nb')", "a\r\nb\n"),
    "a progress bar": ("for i in range(3): print(f'\\r{i}/2', end='')\nprint('\\ndone')", "2/2\ndone\n"),
    "stdout.buffer": ("import sys; print('a'); _ = sys.stdout.buffer.write(b'b\\n')", "a\nb\n"),
    "redirected": (
        "import contextlib, io\nwith contextlib.redirect_stdout(io.StringIO()) as s: print('x')\ns.getvalue()",
        "'x\\n'",
    ),
    "before an error": ("print('seen')\n1/0", "seen\nTraceback (most recent call last):\n"),
    "exotic file": (
        "import sys; print(sys.stdout.isatty(), sys.stdout.encoding, sys.stdout.fileno())",
        "False utf-8 1\n",
    ),
}


@pytest.mark.parametrize("name", CELLS)
def test_output_is_complete_and_in_order(shared: PythonREPL, name: str) -> None:
    code, expected = CELLS[name]
    result = shared.run(code)
    if "error" in name:
        assert result.output.startswith(expected)
        assert "\x1b" not in result.output + result.message
    else:
        assert result.output == expected


@pytest.mark.parametrize(
    "spoil",
    [
        "import sys; sys.stdout.close(); sys.stderr.close()",
        "import os; os.close(1); os.close(2)",
        "import sys; sys.stdout = None",
        "import sys; sys.stdin.close()",
    ],
)
def test_the_next_cell_prints_again(repl: PythonREPL, spoil: str) -> None:
    repl.run(spoil)
    assert repl.run("import os\nprint('a'); os.write(1, b'b\\n');").output == "a\nb\n"


def test_a_handler_of_an_earlier_cell_writes_to_the_cell_that_logs(repl: PythonREPL) -> None:
    repl.run("import logging; logging.basicConfig(format='%(message)s')")
    assert repl.run("logging.warning('now')").output == "now\n"


def test_what_a_cell_leaves_running_prints_into_the_cell_that_runs(repl: PythonREPL) -> None:
    repl.add_tools({"echo": lambda x: x})
    repl.run(
        "import threading\nfrom concurrent.futures import ThreadPoolExecutor\n"
        "go = threading.Event(); pool = ThreadPoolExecutor(1)\n"
        "t = threading.Thread(target=lambda: (go.wait(), print('late'))); t.start()"
    )
    assert repl.run("go.set(); t.join(); print('mine')").output == "late\nmine\n"
    assert repl.run("pool.submit(lambda: print(echo('two'))).result()").output == "two\n"


FLOODS = {
    "prints": "for i in range(20):\n    print('x' * 1_000_000)\nprint('end')",
    "one print": "print('é' * 10_000_000)\nprint('end')",
    "descriptor": "import os\nfor i in range(20):\n    os.write(1, b'x' * 1_000_000)\nprint('end')",
    "child": "import os; _ = os.system('head -c 20000000 /dev/zero | tr \"\\\\0\" x'); print('end')",
}
SIZES = {"prints": 20_000_024, "one print": 10_000_005, "descriptor": 20_000_004, "child": 20_000_004}


@pytest.mark.parametrize("name", FLOODS)
def test_floods_are_clipped_with_an_exact_count(shared: PythonREPL, name: str) -> None:
    result = shared.run(FLOODS[name])
    assert (result.error, result.truncated, result.characters) == (None, True, SIZES[name])
    assert len(result.output) <= 65_536
    left = int(result.output.split("... [")[1].split(" characters")[0])
    mark = f"\n... [{left} characters left out] ...\n"
    assert len(result.output) - len(mark) + left == SIZES[name]
    assert result.output.endswith("end\n")


def test_giant_values_and_messages_are_clipped(shared: PythonREPL) -> None:
    error = shared.run("raise ValueError('z' * 5_000_000)")
    assert error.truncated
    assert error.output.startswith("Traceback")
    assert len(error.message) < 1000


def test_a_small_cap() -> None:
    with PythonREPL(output_cap=200) as repl:
        result = repl.run("for i in range(1000): print(i)\n1/0")
        assert len(result.output) <= 200
        assert result.output.startswith("0\n1\n")
        assert "division by zero" in result.output


@given(st.text(max_size=300), st.integers(0, 300))
def test_clip_keeps_head_and_tail_and_counts_the_rest(text: str, limit: int) -> None:
    short, cut = clip(text, limit)
    assert len(short) <= limit
    assert cut == (len(text) > limit)
    if not cut:
        assert short == text
    elif "... [" in short and "... [" not in text:
        head, rest = short.split("\n... [")
        count, tail = rest.split(" characters left out] ...\n")
        assert text.startswith(head)
        assert text.endswith(tail)
        assert len(head) + int(count) + len(tail) == len(text)


@given(
    st.lists(st.tuples(st.text(max_size=20), st.integers(0, 50), st.text(max_size=20)), max_size=4),
    st.integers(40, 120),
)
def test_pieces_add_up(parts: list[tuple[str, int, str]], limit: int) -> None:
    whole = Piece()
    for part in parts:
        whole = whole.then(Piece(*part))
    assert whole.characters == sum(len(h) + n + len(t) for h, n, t in parts)
    text, cut = clip_parts(whole.head, whole.dropped, whole.tail, limit)
    assert len(text) <= limit
    assert cut or text == "".join(h + t for h, _, t in parts)


@given(st.binary(max_size=200))
def test_any_bytes_become_readable_text(data: bytes) -> None:
    text = shown(data.decode("utf-8", "replace"))
    assert text.isprintable() or all(c.isprintable() or c in "\n\t\r" or ord(c) > 126 for c in text)
    text.encode()
