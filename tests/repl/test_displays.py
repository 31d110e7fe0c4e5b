"""Pictures and tables that cells of the default kind show: the user's as they are, the model's as a line."""

from __future__ import annotations

import base64

import pytest

from rlm_loop import ToolLoopAgent
from rlm_loop.actions import Display
from rlm_loop.models import ScriptedModel
from rlm_loop.repl import PythonREPL

FIGURE = "import matplotlib.pyplot as plt\nplt.plot([1, 2])\n"
LINE = "[picture: image/png, 640x480]\n"
RICH = "class T:\n    def _repr_html_(self): return '<b>t</b>'\n    def __repr__(self): return 'T!'\n"


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


@pytest.mark.parametrize(
    ("code", "output", "displays"),
    [
        (RICH + "T()", "T!", (Display("text/html", "<b>t</b>"),)),
        (RICH + "display(T())\nprint('b')", "T!\nb\n", (Display("text/html", "<b>t</b>"),)),
        ("display(3)", "3\n", ()),
        ("class S:\n    def _repr_svg_(self): return '<svg/>'\nS()", "[picture: image/svg+xml]\n", None),
        ("class B:\n    def _repr_html_(self): 1 / 0\n    def __repr__(self): return 'B!'\nB()", "B!", ()),
        ("3", "3", ()),
        (RICH + "display(T())\n1 / 0", None, (Display("text/html", "<b>t</b>"),)),
    ],
)
def test_rich_values(shared: PythonREPL, code: str, output: str | None, displays: tuple[Display, ...] | None) -> None:
    result = shared.run(code)
    assert output is None or result.output == output
    assert result.displays == ((Display("image/svg+xml", "<svg/>"),) if displays is None else displays)


def test_the_display_of_ipython_where_no_notebook_runs(shared: PythonREPL) -> None:
    pytest.importorskip("IPython")
    result = shared.run("from IPython.display import HTML, display\ndisplay(HTML('<i>x</i>'))", timeout=120)
    assert result.output == "<IPython.core.display.HTML object>\n"
    assert result.displays == (Display("text/html", "<i>x</i>"),)


def test_too_much_is_left_out(shared: PythonREPL) -> None:
    result = shared.run(RICH + "T._repr_html_ = lambda self: 'x' * 3_000_000\ndisplay(T(), T())")
    assert [len(d.data) for d in result.displays] == [3_000_000]
    assert shared.run("1").displays == ()


def test_a_picture_is_the_users_and_a_line_of_it_the_models() -> None:
    model = ScriptedModel(["```python\n" + RICH + "T._repr_png_ = lambda self: b'png'\nT()\n```", "done"])
    outcome = ToolLoopAgent(model).run("Draw.")
    (shown,) = outcome.turns[0].observations[0].displays
    assert shown == Display("image/png", base64.b64encode(b"png").decode())
    assert "[picture: image/png]" in str(model.prompts[1])
    assert shown.data not in str(model.prompts[1])
    assert f"data:image/png;base64,{shown.data}" in outcome._repr_html_()
