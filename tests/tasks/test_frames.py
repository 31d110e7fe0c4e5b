"""The truths of `frames` against pandas over the frames themselves, for several seeds."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from functools import lru_cache
from typing import TYPE_CHECKING, Any, cast

import pytest

from rlm_loop import DirectAgent, ScriptedModel, ToolLoopAgent
from rlm_loop.tasks import Suite, get_suite
from rlm_loop.tasks.base import Attempt, Deferred, Task
from rlm_loop.tasks.frames_data import SCHEMAS
from rlm_loop.tasks.rows import Unfit, ranked, top
from tests.lazy import Lazy, needs

if TYPE_CHECKING:
    import pandas as pd
else:
    pd = Lazy("pandas")

pytestmark = needs("pandas", extra="suites")
Frame = Any
NAMES = [task.id.removeprefix("frames-") for task in get_suite("frames")]
SEEDS = (0, 1, 2)


@lru_cache
def suite(seed: int) -> Suite:
    return get_suite("frames", seed=seed)


def task_of(name: str, seed: int = 0) -> Task:
    return next(t for t in suite(seed) if t.id == f"frames-{name}")


def paid(d: Frame) -> Frame:
    kept = d[d.status != "void"]
    return kept.assign(amount=kept.units * kept.unit_price)


def worth(d: Frame) -> Frame:
    return d.assign(value=d.quantity * d.unit_cost)


def exam(d: Frame, subject: str, which: str) -> Frame:
    return d.query("subject == @subject and exam == @which").set_index("student").points


def largest(values: Frame, n: int = 3) -> list[Any]:
    return list(values.sort_values(ascending=False).index[:n])


def with_manager(d: Frame) -> Frame:
    return d.merge(d, left_on="manager", right_on="number", suffixes=("", "_of_manager"))


def ridden(d: Frame) -> Frame:
    done = d.dropna(subset=["end"])
    return done.assign(minutes=(done.end - done.start).dt.total_seconds() / 60)


def next_of_bike(d: Frame) -> Frame:
    done = ridden(d).sort_values(["bike", "start"])
    before = done.groupby("bike")[["end", "to_station"]].shift()
    return done.assign(end_before=before.end, at_before=before.to_station)


def ok(d: Frame) -> Frame:
    return d[d.quality == "ok"]


def daily_span(d: Frame, station: str) -> Frame:
    days = ok(d)[ok(d).station == station].groupby(d.time.dt.date).temperature
    return days.max() - days.min()


def all_warm(d: Frame) -> int:
    highest = ok(d).groupby([d.time.dt.date, "station"]).temperature.max().unstack()
    return (highest >= 18).all(axis=1).sum()


def left_share(d: Frame) -> Frame:
    kept = d.drop_duplicates()
    return kept.left.notna().groupby(kept.country).mean()


def latest(d: Frame) -> Frame:
    return d.sort_values("joined").groupby(d.email.str.lower()).last()


def booked_share(d: Frame) -> float:
    own = d[(d.airline == "Sol") & (d.status != "cancelled") & (d.departure.dt.month == 3)]
    return 100 * own.passengers.sum() / own.seats.sum()


def stock_gap(d: Frame) -> int:
    own = d[~d.discontinued].groupby("sku")[["quantity", "reorder_at"]].sum()
    return (own.quantity < own.reorder_at).sum()


def spent(d: Frame) -> Frame:
    return paid(d)[paid(d).placed.between("2024-01-01", "2024-06-30")].groupby("customer").amount.sum()


def gaps(d: Frame) -> int:
    return paid(d).sort_values("placed").groupby("customer").placed.diff().dt.days.max()


WITH_PANDAS: dict[str, Callable[[Frame], Any]] = {
    "void": lambda d: (d.status == "void").sum(),
    "diverted": lambda d: (d.status == "diverted").sum(),
    "pro-rows": lambda d: (d.plan == "pro").sum(),
    "finance": lambda d: (d.department == "finance").sum(),
    "warmest": lambda d: d[d.station == "Lake"].temperature.max(),
    "guest-fare": lambda d: d[d.rider == "guest"].fare.max(),
    "graz-most": lambda d: d[d.warehouse == "Graz"].quantity.max(),
    "support-least": lambda d: d[d.department == "support"].salary.min(),
    "by-phone": lambda d: d[d.channel == "phone"].customer.nunique(),
    "from-park": lambda d: d[
        (d.from_station == "Park") & (d.start.dt.normalize() == pd.Timestamp(2024, 6, 5))
    ].bike.nunique(),
    "good-physics": lambda d: ((d.subject == "Physics") & (d.points >= 80)).sum(),
    "many-chairs": lambda d: ((d["product"] == "chair") & (d.units >= 6)).sum(),
    "guests-harbour": lambda d: ((d.rider == "guest") & (d.from_station == "Harbour")).sum(),
    "french-basic": lambda d: ((d.country == "FR") & (d.plan == "basic")).sum(),
    "engineers": lambda d: ((d.department == "engineering") & (d.salary > 60000)).sum(),
    "kite-late": lambda d: ((d.airline == "Kite") & (d.delay > 30)).sum(),
    "small-flights": lambda d: ((d.passengers < 60) & (d.status != "cancelled")).sum(),
    "discontinued": lambda d: (d.discontinued & (d.quantity > 0)).sum(),
    "old-free": lambda d: ((d.age > 60) & (d.plan == "free")).sum(),
    "humid-hill": lambda d: ((d.station == "Hill") & (d.humidity >= 85)).sum(),
    "suspect-port": lambda d: ((d.station == "Port") & (d.quality == "suspect")).sum(),
    "poor-finals": lambda d: (exam(d, "History", "final") < 40).sum(),
    "bergen-out": lambda d: ((d.warehouse == "Bergen") & (d.category == "paint") & (d.quantity == 0)).sum(),
    "maths-8a": lambda d: exam(d[d["class"] == "8a"], "Maths", "midterm").isna().sum(),
    "chairs": lambda d: paid(d)[paid(d)["product"] == "chair"].units.sum(),
    "graz-worth": lambda d: worth(d)[(d.warehouse == "Graz") & ~d.discontinued].value.sum(),
    "busiest-stop": lambda d: d.from_station.value_counts().idxmax(),
    "most-carried": lambda d: d[d.status != "cancelled"].groupby("airline").passengers.sum().idxmax(),
    "maths-mean": lambda d: exam(d, "Maths", "final").mean(),
    "sales-mean": lambda d: d[(d.department == "sales") & (d.hired >= "2015-01-01")].salary.mean(),
    "regulars": lambda d: (paid(d).customer.value_counts() >= 10).sum(),
    "busy-bikes": lambda d: (d.groupby("bike").size() >= 30).sum(),
    "nordan-median": lambda d: d[(d.airline == "Nordan") & (d.status == "landed")].delay.median(),
    "physics-median": lambda d: exam(d, "Physics", "midterm").median(),
    "any-missing": lambda d: d[["temperature", "humidity"]].isna().any(axis=1).sum(),
    "no-supplier": lambda d: d[d.supplier.isna()].sku.nunique(),
    "unfinished": lambda d: d[d.rider == "member"].end.isna().sum(),
    "no-bonus": lambda d: (d[d.department == "legal"].bonus.fillna(0) == 0).sum(),
    "busiest-month": lambda d: str(d.placed.dt.strftime("%Y-%m").value_counts().idxmax()),
    "flight-weekday": lambda d: d.departure.dt.day_name().value_counts().idxmax(),
    "first-quarter": lambda d: (d.hired.dt.quarter == 1).sum(),
    "weekend": lambda d: (d.placed.dt.day_of_week >= 5).sum(),
    "joined-2022": lambda d: (d.joined.between("2022-01-01", "2022-12-31") & d.left.isna()).sum(),
    "noon": lambda d: ok(d)[(ok(d).station == "Lake") & (ok(d).time.dt.hour == 12)].temperature.mean(),
    "copies": lambda d: d.duplicated().sum(),
    "people": lambda d: d.email.str.lower().nunique(),
    "largest-stock": lambda d: largest(d.groupby("sku").quantity.sum()),
    "best-paid": lambda d: largest(d[d.department == "sales"].set_index("name").salary),
    "cancelled": lambda d: 100 * (d.status == "cancelled").mean(),
    "round-trips": lambda d: 100 * (ridden(d).from_station == ridden(d).to_station).mean(),
    "best-class": lambda d: d[(d.subject == "Music") & (d.exam == "final")].groupby("class").points.mean().idxmax(),
    "least-trusted": lambda d: d[d.quality == "suspect"].station.value_counts().idxmax(),
    "best-customer": lambda d: spent(d).idxmax(),
    "late-origin": lambda d: (d.dropna(subset=["delay"]).delay > 15).groupby(d.origin).mean().idxmax(),
    "over-manager": lambda d: with_manager(d).eval("salary > salary_of_manager").sum(),
    "improved": lambda d: (
        exam(d, "Maths", "final") > exam(d, "Maths", "midterm").reindex_like(exam(d, "Maths", "final"))
    ).sum(),
    "widest-day": lambda d: daily_span(d, "Hill").idxmax(),
    "busiest-day": lambda d: ridden(d).groupby(d.start.dt.date).minutes.sum().idxmax(),
    "good-students": lambda d: (d.groupby("student").points.mean() >= 60).sum(),
    "reorder": stock_gap,
    "old-counts": lambda d: worth(d)[d.counted < "2024-03-01"].groupby("category").value.sum().idxmax(),
    "best-channel": lambda d: paid(d).query("units >= 5").groupby("channel").amount.mean().idxmax(),
    "pro-in-2022": lambda d: len(
        d.drop_duplicates().query("plan == 'pro' and joined <= '2022-12-31' and not left <= '2022-12-31'")
    ),
    "latest-plan": lambda d: (latest(d).plan == "free").sum(),
    "longest-gap": gaps,
    "longest-wait": lambda d: (lambda n: (n.start - n.end_before).dt.total_seconds().max() / 60)(
        next_of_bike(d[d.bike == "B07"])
    ),
    "bad-days": lambda d: (d[d.status == "cancelled"].departure.dt.date.value_counts() >= 2).sum(),
    "warm-days": all_warm,
    "void-share": lambda d: (d.status == "void").groupby(d["product"]).mean().idxmax(),
    "slow-stop": lambda d: ridden(d)[ridden(d).rider == "guest"].groupby("from_station").minutes.mean().idxmax(),
    "largest-team": lambda d: with_manager(d).name_of_manager.value_counts().idxmax(),
    "other-department": lambda d: with_manager(d).query("department != department_of_manager").salary.mean(),
    "filled": lambda d: d[d.station == "Port"].sort_values("time").temperature.ffill().mean(),
    "absent-zero": lambda d: d.fillna({"points": 0}).groupby("class").points.mean().idxmax(),
    "all-passed": lambda d: (d[d.exam == "final"].fillna({"points": 0}).groupby("student").points.min() >= 50).sum(),
    "carried": lambda d: next_of_bike(d).dropna(subset=["at_before"]).query("from_station != at_before").bike.nunique(),
    "sol-seats": booked_share,
    "porto-share": lambda d: 100 * worth(d)[d.warehouse == "Porto"].value.sum() / worth(d).value.sum(),
    "left-country": lambda d: left_share(d).idxmax(),
    "late-cities": lambda d: largest(d[d.status == "landed"].groupby("destination").delay.mean()),
}


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("name", NAMES)
def test_pandas_agrees(name: str, seed: int) -> None:
    task = task_of(name, seed)
    answer = WITH_PANDAS[name](task.material())
    score = task.judge(Attempt(answer, answered=True))
    assert score.resolved, score.reason
    assert task.judge(Attempt(f"{answer}")).resolved


@pytest.mark.parametrize("name", NAMES)
def test_what_is_near_is_wrong(name: str) -> None:
    task = task_of(name)
    near: dict[type, Callable[[Any], Any]] = {
        int: lambda x: x + 1,
        float: lambda x: x + 0.02,
        str: lambda x: f"{x}1",
        list: lambda x: x[::-1],
    }
    assert not task.judge(Attempt(near[type(task.expected)](task.expected), answered=True)).resolved
    assert not task.judge(Attempt()).resolved


def test_shape() -> None:
    made = suite(0)
    assert len(made) == len(set(NAMES)) == 80
    assert set(NAMES) == set(WITH_PANDAS)
    assert made == get_suite("frames") != suite(1)
    assert [t.level for t in made] == sorted(t.level for t in made)
    dev, test = made.split("dev"), made.split("test")
    for first, second in zip(dev, test, strict=True):
        assert (first.level, first.tags[2]) == (second.level, second.tags[2])
    for half in (dev, test):
        tables = [t.facts["table"] for t in half]
        assert all(tables.count(name) >= 4 for name in SCHEMAS)
    assert not {t.context for t in dev} & {t.context for t in test}


def test_a_question_says_how_to_answer_and_names_no_value_that_only_code_would() -> None:
    for task in suite(0):
        assert task.question.startswith(SCHEMAS[task.facts["table"]].about)
        assert "Answer" in task.question
        assert len(task.question) < 400
        assert "==" not in task.question


@pytest.mark.parametrize("table", SCHEMAS)
def test_a_frame_is_the_same_each_time_and_holds_what_was_drawn(table: str) -> None:
    task = next(t for t in suite(0) if t.facts["table"] == table)
    rows, frame = SCHEMAS[table].rows(cast(Deferred, task.context).name.removeprefix("frames/")), task.material()
    pd.testing.assert_frame_equal(frame, task.material())
    assert 200 <= len(frame) == len(rows) == task.facts["rows"] <= 2000
    for column, kind in SCHEMAS[table].columns.items():
        values = [None if pd.isna(v) else v for v in frame[column].tolist()]
        assert values == [row[column] for row in rows]
        assert kind != "text" or frame[column].dtype == object
    assert frame.drop_duplicates().shape != frame.shape or table != "members"


def test_two_studies_with_the_same_frames_say_so() -> None:
    lines = [cast(Deferred, t.context).identify() for t in suite(0)]
    assert lines == [cast(Deferred, t.context).identify() for t in get_suite("frames")]
    assert len(set(lines)) == 16
    assert not {line.rpartition(" ")[2] for line in lines} & {
        cast(Deferred, t.context).identify().rpartition(" ")[2] for t in suite(1)
    }


def test_without_pandas_the_questions_can_be_listed_and_a_frame_says_what_to_install() -> None:
    program = (
        "import sys; sys.modules['pandas'] = None\n"
        "from rlm_loop.tasks import get_suite\n"
        "task = get_suite('frames').tasks[0]\n"
        "print(task.expected > 0)\n"
        "try: task.material()\n"
        "except ImportError as e: print(e)"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout.splitlines() == [
        "True",
        'the suite frames needs pandas: pip install -e ".[suites]" in your clone of rlm_loop',
    ]


def test_ties_are_found() -> None:
    with pytest.raises(Unfit):
        top({"a": 1.0, "b": 2.0, "c": 2.0})
    with pytest.raises(Unfit):
        ranked({"a": 3.0, "b": 2.0, "c": 2.0}, 2)
    assert ranked({"a": 3.0, "b": 1.0, "c": 2.0}, 2) == ["a", "c"]


def test_the_code_loop_computes_on_the_frame() -> None:
    task = task_of("void")
    code = "```python\nfinal_answer(int((context.status == 'void').sum()))\n```"
    outcome = ToolLoopAgent(model=ScriptedModel([code])).attempt(task)
    assert task.judge(Attempt.of(outcome)).resolved


def test_a_strategy_without_a_repl_reads_whole_rows() -> None:
    task = task_of("void")
    model = ScriptedModel(["76"])
    outcome = DirectAgent(model=model, window=2000).attempt(task)
    assert outcome.answer == "76"
    told = model.prompts[0].messages[-1].text
    lines = task.material().to_csv(index=False).splitlines()
    shown = [line for line in told.splitlines() if line in lines]
    assert lines[:20] == shown[:20]
    assert lines[-10:] == shown[-10:]
    assert f"\n... [{len(lines) - len(shown)} rows left out] ...\n" in told
    assert 1900 < sum(len(line) + 1 for line in shown) < 2000
