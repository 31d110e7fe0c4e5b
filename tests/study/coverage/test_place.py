"""Where pieces of texts come from, compared with a search that looks at everything."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rlm_loop.study.coverage.grams import codes_of, windows
from rlm_loop.study.coverage.place import places_of
from rlm_loop.study.coverage.ranges import counted, gaps, merged, within

WORDS = st.text(alphabet="ab1", max_size=60)
LONG = "".join(f"line {i:04d} says {i * 7919 % 10007:05d} and nothing else at all\n" for i in range(400))


def places(long: str, *short: str, **more: object) -> list[list[tuple[int, int]]]:
    return places_of(long, short, **more)  # pyright: ignore[reportArgumentType]


@given(st.text(max_size=40), st.integers(1, 33))
def test_windows_hash_by_content(text: str, size: int) -> None:
    hashes = windows(codes_of(text * 3), size)
    pieces = [(text * 3)[i : i + size] for i in range(len(text * 3) - size + 1)]
    assert len(hashes) == len(pieces)
    seen = dict(zip(hashes.tolist(), pieces, strict=True))
    assert [seen[h] for h in hashes.tolist()] == pieces
    assert len(set(hashes.tolist())) == len(set(pieces))


def every_place(long: str, short: str, least: int) -> list[tuple[int, int]]:
    """The ranges of all windows that both hold, found by looking at each."""
    held = {short[i : i + least] for i in range(len(short) - least + 1)}
    starts = [i for i in range(len(long) - least + 1) if long[i : i + least] in held]
    return merged((s, s + least) for s in starts)


@settings(max_examples=150, deadline=None)
@given(WORDS, st.lists(WORDS, max_size=4), st.integers(2, 9))
def test_all_places_are_those_of_a_plain_search(long: str, short: list[str], least: int) -> None:
    short = [f"#{text}#" for text in short]  # no whole lines, which have a rule of their own
    found = places_of(long, short, least=least, ambiguous="all")
    assert found == [every_place(long, text, least) for text in short]


@settings(max_examples=150, deadline=None)
@given(WORDS, st.lists(WORDS, max_size=4), st.integers(2, 9))
def test_one_place_each_holds_every_piece_once(long: str, short: list[str], least: int) -> None:
    short = [f"#{text}#" for text in short]
    for text, found in zip(short, places_of(long, short, least=least), strict=True):
        every = every_place(long, text, least)
        assert bool(found) == bool(every)
        for start, end in found:
            assert within(every, start, end) == end - start  # never more than all places
        for start, end in every:  # what both have in one place only is found there
            for i in range(start, end - least + 1):
                if long[i : i + least] in text and overlaps(long, long[i : i + least]) == 1:
                    assert within(found, i, i + least) == least


def overlaps(long: str, piece: str) -> int:
    return sum(long.startswith(piece, i) for i in range(len(long)))


@settings(max_examples=60, deadline=None)
@given(st.integers(0, len(LONG) - 1), st.integers(24, 3000))
def test_a_slice_of_distinct_text_is_found_exactly(start: int, size: int) -> None:
    piece = LONG[start : start + size]
    if len(piece) >= 24 and LONG.count(piece) == 1:
        [[(low, high)]] = places(LONG, f"<<{piece}>>")
        assert (low, high) == (start, start + len(piece))


@pytest.mark.parametrize(
    ("length", "counts"),
    [(23, False), (24, True), (60, True)],
)
def test_pieces_below_the_least_length_do_not_count(length: int, counts: bool) -> None:
    piece = LONG[1003 : 1003 + length]
    assert places(LONG, f"#{piece}#") == ([[(1003, 1003 + length)]] if counts else [[]])


SHORT = (
    "id,ok\nalpha 1,yes\nbeta 22,no\nyes\n}\nyes\n" + "x" * 10 + " filler that nobody prints, longer than the rest\n"
)


@pytest.mark.parametrize(
    ("shown", "found"),
    [
        ("beta 22,no", ["beta 22,no"]),  # a whole line that is there once
        ("1: beta 22,no", []),  # not a whole line
        ("  beta 22,no  \n", ["beta 22,no"]),  # blanks around it do not matter
        ("}", []),  # too short to say anything
        ("yes", []),
        ("alpha 1,yes\nbeta 22,no\nye", ["alpha 1,yes\nbeta 22,no\nye"]),  # 24 characters and more, lines or not
    ],
)
def test_short_whole_lines(shown: str, found: list[str]) -> None:
    [ranges] = places(SHORT, shown)
    assert [SHORT[a:b] for a, b in ranges] == found


def test_a_line_that_the_context_has_twice_is_no_evidence_unless_all_places_count() -> None:
    twice = "name: ab12\nother\nname: ab12\n"
    assert places(twice, "name: ab12") == [[]]
    assert places(twice, "name: ab12", ambiguous="all") == [[(0, 10), (17, 27)]]


REPEATED = "the same paragraph of words again\n"
BOOK = (
    f"{REPEATED}chapter one begins with its own words\n{REPEATED}chapter two begins with other words\n{REPEATED}end\n"
)


@pytest.mark.parametrize(
    ("shown", "places_expected"),
    [
        (REPEATED, [0]),  # alone: the first
        ("one begins with its own words ... " + REPEATED, [1]),  # after a match: the next one
        ("two begins with other words ... " + REPEATED, [2]),
        (REPEATED + " ... two begins with other words", [1]),  # before one: the nearest before
        (REPEATED + " ... " + REPEATED, [0, 1]),  # again: the next again
    ],
)
def test_repeated_text_is_placed_next_to_the_previous_match(shown: str, places_expected: list[int]) -> None:
    at = [i for i in range(len(BOOK)) if BOOK.startswith(REPEATED[:-1], i)]
    [ranges] = places(BOOK, shown)
    assert [n for n, start in enumerate(at) if within(ranges, start, start + 33) == 33] == places_expected


def test_lines_picked_out_end_where_they_end() -> None:
    picked = "".join(LONG.splitlines(keepends=True)[i] for i in (3, 77, 78, 200, 201, 9))
    width = LONG.index("\n") + 1
    [ranges] = places(LONG, picked)
    assert ranges == [(a * width, b * width) for a, b in ((3, 4), (9, 10), (77, 79), (200, 202))]


def test_all_places_of_repeated_text() -> None:
    [ranges] = places(BOOK, REPEATED, ambiguous="all")
    assert len(ranges) == 3


def test_the_longest_match_comes_first() -> None:
    long = "abcdefghijklmnopqrstuvwxyz 1\n" + "abcdefghijklmnopqrstuvwxyz 2 and more\n"
    [[(start, end)]] = places(long, "see abcdefghijklmnopqrstuvwxyz 2 and")
    assert long[start:end] == "abcdefghijklmnopqrstuvwxyz 2 and"
    assert start == 29


@pytest.mark.parametrize("rule", ["-" * 40, " " * 40, "=-" * 30])
def test_ruled_lines_are_no_evidence(rule: str) -> None:
    assert places(f"head\n{rule}\ntail", f"my own table\n{rule}\n") == [[]]


def test_blanks_between_two_matches_belong_to_them() -> None:
    text = "def function_with_a_name(x):\n" + " " * 40 + "return other_function_of(x)\n"
    [[(start, end)]] = places(text, text)
    assert (start, end) == (0, len(text))


@pytest.mark.parametrize("text", ["", "\n", "x" * 23])
@pytest.mark.parametrize("context", ["", "y" * 100, "\ud800 lone surrogate \udfff here, in the middle of text"])
def test_nothing_in_common(text: str, context: str) -> None:
    assert places(context, text, text) == [[], []]
    assert places_of(context, []) == []


def test_beyond_ascii() -> None:
    text = (
        "Ähnlichkeiten über größere Abstände "
        + "日本語の文章がここにあります。二十四文字以上になるように書きました。"
        + "\U0001f600" * 3
    )
    [[(start, end)]] = places("lead in " + text + " and out", "- " + text[5:])
    assert (start, end) == (13, 8 + len(text))


@given(st.lists(st.tuples(st.integers(0, 30), st.integers(0, 30)), max_size=8))
def test_ranges(pairs: list[tuple[int, int]]) -> None:
    ranges = [(min(p), max(p)) for p in pairs]
    times = [sum(a <= i < b for a, b in ranges) for i in range(30)]
    assert [sum(n for a, b, n in counted(ranges) if a <= i < b) for i in range(30)] == times
    joined = merged(ranges)
    assert [within(joined, i, i + 1) for i in range(30)] == [int(t > 0) for t in times]
    assert [within(gaps(joined, 30), i, i + 1) for i in range(30)] == [int(t == 0) for t in times]
    assert within(joined, 3, 20) == sum(t > 0 for t in times[3:20])
