"""Pictures and tables that cells of the default kind show: the user's as they are, the model's as a line."""

from __future__ import annotations

import base64
from collections.abc import Iterator
from typing import Any

import pytest
from session_kinds import session

from rlm_loop import ToolLoopAgent
from rlm_loop.actions import Display
from rlm_loop.models import ScriptedModel
from rlm_loop.repl import PythonREPL

FIGURE = "import matplotlib.pyplot as plt\nplt.plot([1, 2])\n"
LINE = "[picture: image/png, 640x480]\n"
RICH = "class T:\n    def _repr_html_(self): return '<b>t</b>'\n    def __repr__(self): return 'T!'\n"


@pytest.fixture(scope="module", params=["subprocess", "kernel", "notebook"])
def showing(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    with session(request.param, tmp_path_factory.mktemp("ipython"), timeout=120) as repl:
        yield repl


@pytest.mark.parametrize(
    ("code", "output", "pictures"),
    [
        (FIGURE + "plt.show()\nprint('after')", LINE + "after\n", 1),
        (FIGURE + "None", LINE, 1),
        ("import matplotlib\nmatplotlib.use('Agg')\n" + FIGURE + "plt.show()", LINE, 1),
        (FIGURE + "plt.show()\nplt.plot([3])\nplt.show()", LINE + LINE, 2),
        (FIGURE + "plt.gcf()", LINE, 1),
        ("import matplotlib.pyplot as plt\nplt.figure();", "", 0),
    ],
)
def test_figures(shared: PythonREPL, code: str, output: str, pictures: int) -> None:
    pytest.importorskip("matplotlib")
    result = shared.run(code, timeout=120)
    assert (result.error, result.output) == (None, output)
    assert [d.mime for d in result.displays] == ["image/png"] * pictures
    assert all(base64.b64decode(d.data).startswith(b"\x89PNG") for d in result.displays)


def test_figures_and_tables(showing: Any) -> None:
    pytest.importorskip("matplotlib")
    pytest.importorskip("pandas")
    result = showing.run("import matplotlib.pyplot as plt\nplt.plot([1, 2]);")
    assert ([d.mime for d in result.displays], result.output) == (["image/png"], LINE)
    table = showing.run("import pandas as pd\npd.DataFrame({'a': [1]})")
    assert table.output.split() == ["a", "0", "1"]
    assert "<table" in table.displays[0].data


HTML = [("text/html", "<b>t</b>")]
SVG_LINE, SVG = "[picture: image/svg+xml]\n", [("image/svg+xml", "<svg/>")]
SHOWN: list[tuple[str, str | None, list[tuple[str, str]]]] = [
    (RICH + "T()", "T!", HTML),
    (RICH + "display(T())\nprint('b')", "T!\nb\n", HTML),
    ("display(3)", "3\n", []),
    ("class S:\n    def _repr_svg_(self): return '<svg/>'\nS()", SVG_LINE, SVG),
    (RICH + "display(T())\n1 / 0", None, HTML),
    ("display({'text/html': '<p>', 'image/svg+xml': '<svg/>', 'text/plain': 'p'}, raw=True)", SVG_LINE, SVG),
    ("display({'text/html': 'x' * 9_000_000, 'text/plain': 'big'}, raw=True)", "big\n", []),
    ("display({'text/latex': '$x$', 'text/plain': 'x'}, raw=True)\n1/0", None, [("text/latex", "$x$")]),
    (
        "from IPython.display import HTML\nprint('a')\ndisplay(HTML('<i>x</i>'))\nprint('b')",
        "a\n<IPython.core.display.HTML object>\nb\n",
        [("text/html", "<i>x</i>")],
    ),
]


@pytest.mark.parametrize(("code", "output", "displays"), SHOWN)
def test_rich_values(
    showing: Any, capsys: pytest.CaptureFixture[str], code: str, output: str | None, displays: list[tuple[str, str]]
) -> None:
    result = showing.run(code)
    assert output is None or (result.error, result.output) == (None, output)
    assert [(d.mime, d.data) for d in result.displays] == displays
    assert capsys.readouterr().out == ""


def test_too_much_and_what_fails_are_left_out(shared: PythonREPL) -> None:
    failing = shared.run("class B:\n    def _repr_html_(self): 1 / 0\n    def __repr__(self): return 'B!'\nB()")
    assert (failing.output, failing.displays) == ("B!", ())
    result = shared.run(RICH + "T._repr_html_ = lambda self: 'x' * 3_000_000\ndisplay(T(), T())")
    assert [len(d.data) for d in result.displays] == [3_000_000]
    assert shared.run("1").displays == ()


def test_a_picture_is_the_users_and_a_line_of_it_the_models() -> None:
    model = ScriptedModel(["```python\n" + RICH + "T._repr_png_ = lambda self: b'png'\nT()\n```", "done"])
    outcome = ToolLoopAgent(model).run("Draw.")
    (shown,) = outcome.turns[0].observations[0].displays
    assert shown == Display("image/png", base64.b64encode(b"png").decode())
    assert ("[picture: image/png]" in (told := str(model.prompts[1])), shown.data in told) == (True, False)
    assert f"data:image/png;base64,{shown.data}" in outcome._repr_html_()
