"""One style: arms that stay apart without colour, and files that keep the alternative text."""

from __future__ import annotations

import itertools
import xml.etree.ElementTree as ElementTree
from pathlib import Path

import pytest
from made_ablation import full

from rlm_loop.report import figure
from rlm_loop.report.figures import alt_text, data_uri, marks, resolve_rates, save, style, svg
from rlm_loop.report.figures.colours import COLOURS
from rlm_loop.report.figures.labels import apart
from rlm_loop.report.figures.style import sheet
from rlm_loop.study import StudyError

#: G. M. Machado, M. M. Oliveira, L. A. F. Fernandes, IEEE TVCG 15 (2009): full strength, for linear RGB.
BLINDNESS = {
    "none": ((1, 0, 0), (0, 1, 0), (0, 0, 1)),
    "protanopia": ((0.152, 1.053, -0.205), (0.115, 0.786, 0.099), (-0.004, -0.048, 1.052)),
    "deuteranopia": ((0.367, 0.861, -0.228), (0.280, 0.673, 0.047), (-0.012, 0.043, 0.969)),
    "tritanopia": ((1.256, -0.077, -0.179), (-0.078, 0.931, 0.148), (0.005, 0.691, 0.304)),
}


def lab(colour: str, matrix: tuple[tuple[float, ...], ...]) -> tuple[float, float, float]:
    """CIE L*a*b* (D65) of a colour as it is seen."""
    straight = [int(colour[i : i + 2], 16) / 255 for i in (1, 3, 5)]
    linear = [c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in straight]
    r, g, b = (min(1.0, max(0.0, sum(m * c for m, c in zip(row, linear, strict=True)))) for row in matrix)
    white = (0.9505, 1.0, 1.089)
    xyz = (
        0.4124 * r + 0.3576 * g + 0.1805 * b,
        0.2126 * r + 0.7152 * g + 0.0722 * b,
        0.0193 * r + 0.1192 * g + 0.9505 * b,
    )
    x, y, z = (v ** (1 / 3) if v > 0.008856 else 7.787 * v + 16 / 116 for v in (a / w for a, w in zip(xyz, white)))
    return 116 * y - 16, 500 * (x - y), 200 * (y - z)


@pytest.mark.parametrize("eyes", BLINDNESS)
def test_colours_stay_apart_for_every_eye(eyes: str) -> None:
    seen = [lab(colour, BLINDNESS[eyes]) for colour in COLOURS]
    for one, other in itertools.combinations(seen, 2):
        assert sum((a - b) ** 2 for a, b in zip(one, other, strict=True)) ** 0.5 > 10


def test_arms_stay_apart_in_grey() -> None:
    seven = marks([f"arm-{n}" for n in range(7)]).values()
    assert len({m.marker for m in seven}) == len({str(m.line) for m in seven}) == len({m.hatch for m in seven}) == 7
    many = marks([f"arm-{n}" for n in range(40)]).values()
    assert len({(m.colour, m.marker) for m in many}) == 40


@pytest.mark.parametrize(
    "arms",
    [
        ["lean", "react-text", "code"],
        ["code", "lean"],
        ["code", "lean", "react-native", "react-text"],
        ["depth-0", "lean"],
        ["lean, model-a", "code, model-a", "lean, model-b", "code, model-b"],
        ["code", "code[max_depth=0]", "lean", "lean[max_depth=0]"],
    ],
)
def test_an_arm_has_one_colour_in_all_studies_and_no_other_arm_has_it(arms: list[str]) -> None:
    drawn = marks(arms)
    assert len({mark.colour for mark in drawn.values()}) == len(arms)
    alone = {"lean": COLOURS[0], "react-text": COLOURS[1], "code": COLOURS[2], "react-native": COLOURS[3]}
    for arm in arms:
        if arm in alone:
            assert drawn[arm].colour == alone[arm]


@pytest.mark.parametrize(
    ("wanted", "places"),
    [
        ([], []),
        ([3.0], [3.0]),
        ([0.0, 5.0], [0.0, 5.0]),
        ([5.0, 5.0], [4.0, 6.0]),
        ([5.0, 0.0, 5.0, 5.0], [3.0, 0.0, 5.0, 7.0]),
        ([1.0, 0.0, 9.0], [1.5, -0.5, 9.0]),
    ],
)
def test_names_beside_lines_are_moved_apart_as_little_as_can_be(wanted: list[float], places: list[float]) -> None:
    assert apart(wanted, 2.0) == pytest.approx(places)


@pytest.mark.parametrize("ending", [".png", ".svg", ".pdf"])
def test_a_file_keeps_its_text_and_repeats(tmp_path: Path, ending: str) -> None:
    made = resolve_rates(full())
    (path,) = save(made, tmp_path / f"rates{ending}")
    (again,) = save(resolve_rates(full()), tmp_path / "b" / f"rates{ending}")
    assert path.read_bytes() == again.read_bytes()
    said = alt_text(made)
    if ending == ".png":
        from PIL import Image

        with Image.open(path) as image:
            assert image.info["Description"] == said
            assert image.size == tuple(round(200 * side) for side in made.get_size_inches())
    elif ending == ".svg":
        (desc,) = ElementTree.parse(path).getroot().findall("{http://www.w3.org/2000/svg}desc")
        assert desc.text == said
    else:
        assert b"/Subject" in path.read_bytes()


def test_without_an_ending_there_are_two_files(tmp_path: Path) -> None:
    assert [p.name for p in save(resolve_rates(full(1)), tmp_path / "q4.k_m")] == ["q4.k_m.png", "q4.k_m.svg"]
    assert [p.name for p in save(figure(full(1)), tmp_path / "a.b")] == ["a.b.png", "a.b.svg"]


def test_files_that_cannot_be(tmp_path: Path) -> None:
    made = resolve_rates(full(1))
    with pytest.raises(StudyError, match=r"cannot save a figure as \.jpg; use one of \.png"):
        save(made, tmp_path / "a.jpg")
    (tmp_path / "file").write_text("")
    with pytest.raises(StudyError, match="choose another folder"):
        save(made, tmp_path / "file" / "a.png")


def test_an_element_for_a_page() -> None:
    made = resolve_rates(full(1), arms=["code", "lean"])
    made.set_label('code < lean & "more"')
    root = ElementTree.fromstring(svg(made, name="one"))
    assert root.attrib["role"] == "img"
    assert root.attrib["aria-label"] == 'code < lean & "more"'
    assert "width" not in root.attrib
    names = [e.attrib["id"] for e in root.iter() if "id" in e.attrib]
    assert names
    assert all(name.startswith("one-") for name in names)
    assert not list(root.iter("{http://www.w3.org/2000/svg}text"))  # letters are shapes
    used = [v for e in root.iter() for v in e.attrib.values() if v.startswith("url(#")]
    assert {u[5:-1] for u in used} <= set(names)
    assert data_uri(made).startswith("data:image/png;base64,iVBOR")


def test_the_text_of_other_figures_names_their_panels() -> None:
    with style():
        made = sheet(3, 2)
        assert alt_text(made) == ""
        axes = made.subplots()
        axes.set_title("Rates")
        axes.set_xlabel("turn")
    assert alt_text(made) == "Figure with 1 panel: Rates (y by turn)."


def test_the_style_is_for_the_block_only() -> None:
    import matplotlib

    before = matplotlib.rcParams["axes.spines.top"]
    with style():
        assert matplotlib.rcParams["axes.spines.top"] is False
    assert matplotlib.rcParams["axes.spines.top"] is before
