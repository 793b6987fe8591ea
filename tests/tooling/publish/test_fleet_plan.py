"""The fleet on paper, held against the table it was worked out with, and against itself by other ways."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from mps_build.cli import main
from mps_build.common.errors import UsageError
from mps_build.publish.fleet.costs import Costs, measured_costs
from mps_build.publish.fleet.simulate import (
    Shape,
    best_shape,
    build_times,
    list_makespan,
    macs_needed,
    plan,
    run_events,
)


@pytest.mark.parametrize(
    ("cores", "minutes"),
    [
        (4, (78, 29, 15, 9.5)),
        (8, (42, 18, 11, 7.8)),
        (10, (35, 15, 9.6, 7.4)),
        (14, (27, 13, 8.6, 7.0)),
        (24, (18, 9.8, 7.5, 6.6)),
    ],
)
def test_one_build_takes_what_the_table_says(cores: int, minutes: tuple[float, ...]) -> None:
    for hits, wanted in zip((0.0, 0.7, 0.9, 0.98), minutes, strict=True):
        found = Costs(cores=cores).build_minutes(hits)

        # Half of the last digit that the table prints; 14 cores cold are 26.497, which it has as 27.
        assert found == pytest.approx(wanted, abs=0.06 if wanted != int(wanted) or wanted == 7.0 else 0.51)


@pytest.mark.parametrize(
    ("shape", "build_hours", "core_minutes", "test_hours"),
    [
        ((1, 4, 3, 1, 1), 1.2, 720, 2.4),
        ((1, 4, 3, 3, 3), 0.6, 720, 0.8),
        ((7, 4, 3, 3, 3), 2.0, 3535, 5.6),
        ((30, 4, 3, 4, 3), 6.0, 14329, 24),
        ((30, 4, 3, 8, 6), 3.1, 14329, 12),
    ],
)
def test_a_fleet_takes_what_the_table_says(
    shape: tuple[int, ...], build_hours: float, core_minutes: float, test_hours: float
) -> None:
    found = plan(Shape(**dict(zip(Shape.__dataclass_fields__, shape, strict=True))), Costs())

    assert found.build_minutes / 60 == pytest.approx(build_hours, abs=0.051)
    assert found.core_minutes == pytest.approx(core_minutes, abs=1)
    assert found.test_minutes / 60 == pytest.approx(test_hours, abs=0.051)


def test_without_a_cache_thirty_commits_cost_three_times_as_much() -> None:
    found = plan(Shape(commits=30, pythons=4, macos=3, builders=4, testers=3), Costs())

    assert found.uncached_core_minutes == pytest.approx(41_635, abs=1)
    assert found.bottleneck == "testers"


_SMALL = st.builds(
    Shape,
    commits=st.integers(1, 6),
    pythons=st.integers(1, 4),
    macos=st.integers(1, 3),
    builders=st.integers(1, 5),
    testers=st.integers(1, 6),
)


@settings(max_examples=60, deadline=None)
@given(_SMALL)
def test_the_event_run_keeps_within_what_arithmetic_allows(shape: Shape) -> None:
    costs = Costs()
    minutes = build_times(shape, costs)
    found = plan(shape, costs)
    cold_first = minutes[0] + (list_makespan(minutes[1:], shape.builders) if minutes[1:] else 0)

    assert found.whole_minutes >= max(cold_first, minutes[0] + found.test_minutes) - 1e-9 + (
        costs.test_minutes if cold_first > minutes[0] + found.test_minutes else 0
    )
    assert found.whole_minutes <= cold_first + shape.tests * costs.test_minutes + 1e-9


@settings(max_examples=60, deadline=None)
@given(_SMALL)
def test_a_plain_clock_gives_what_the_event_run_gives(shape: Shape) -> None:
    costs = Costs(core_minutes=92.0, cores=10, serial_minutes=2.0, commit_hits=0.0, python_hits=0.0, test_minutes=5.0)

    assert run_events(shape, costs) == pytest.approx(_by_the_minute(shape, build=12, test=5))


def _by_the_minute(shape: Shape, *, build: int, test: int) -> int:
    """Step through whole minutes: no heap, no events, only who is busy until when."""
    builders, testers = [0] * shape.builders, [0] * shape.testers
    started: list[int] = []
    queues: list[list[int]] = [[] for _ in range(shape.macos)]
    clock = done = 0
    while done < shape.tests:
        for end in [begin + build for begin in started]:
            if end == clock:
                for queue in queues:
                    queue.append(end)
        cold_is_done = bool(started) and started[0] + build <= clock
        for index, busy_until in enumerate(builders):
            if busy_until <= clock and len(started) < shape.builds and (not started or cold_is_done):
                builders[index] = clock + build
                started.append(clock)
        for macos, queue in enumerate(queues):
            for tester in shape.testers_of(macos):
                if queue and testers[tester] <= clock:
                    queue.pop(0)
                    testers[tester] = clock + test
                    done += 1
        clock += 1
    return max(testers)


def test_the_best_shape_is_never_worse_than_the_one_asked_for() -> None:
    shape = Shape(commits=7, pythons=4, macos=3, builders=6, testers=1)

    best = best_shape(shape, Costs())

    assert best.shape.builders + best.shape.testers == 7
    assert best.whole_minutes < plan(shape, Costs()).whole_minutes


def _receipt(path: Path, *, seconds: float, jobs: int, hit_rate: float | None) -> None:
    cache = None if hit_rate is None else {"hits": 1, "misses": 1, "hit_rate": hit_rate}
    steps = [
        {"step": "configure", "seconds": 90.0, "facts": {}},
        {"step": "compile_wheel", "seconds": seconds, "facts": {"cache": cache}},
        {"step": "finish_wheel", "seconds": 30.0, "facts": {}},
    ]
    path.write_text(json.dumps({"environment": {"MAX_JOBS": str(jobs)}, "steps": steps}), encoding="utf-8")


def test_receipts_and_records_replace_the_assumptions(tmp_path: Path) -> None:
    _receipt(tmp_path / "a.whl.receipt.json", seconds=1200, jobs=8, hit_rate=None)
    (tmp_path / "record.json").write_text(
        json.dumps({"verdict": "verified", "partial": False, "seconds": 600}), encoding="utf-8"
    )

    found = measured_costs(tmp_path, Costs())

    assert found.cores == 8
    assert found.serial_minutes == 2.0
    assert found.build_minutes(0.0) == pytest.approx(22.0, abs=0.01)
    assert found.test_minutes == 10.0
    assert set(found.measured) == {"cores", "core_minutes", "serial_minutes", "test_minutes"}


def test_hits_of_a_measured_build_are_taken_out_again(tmp_path: Path) -> None:
    _receipt(tmp_path / "a.whl.receipt.json", seconds=1200, jobs=8, hit_rate=0.5)

    found = measured_costs(tmp_path, Costs())

    assert found.build_minutes(0.5) == pytest.approx(22.0, abs=0.01)
    assert found.commit_hits == 0.5


def test_a_rehearsal_is_no_measure_of_a_test(tmp_path: Path) -> None:
    (tmp_path / "record.json").write_text(json.dumps({"verdict": "rehearsed", "seconds": 6}), encoding="utf-8")

    with pytest.raises(UsageError, match="holds no receipt"):
        measured_costs(tmp_path, Costs())


@pytest.mark.parametrize("text", ["", "[]", '{"steps": []}'])
def test_a_broken_receipt_is_named(tmp_path: Path, text: str) -> None:
    (tmp_path / "a.whl.receipt.json").write_text(text, encoding="utf-8")

    with pytest.raises(UsageError, match=r"a\.whl\.receipt\.json"):
        measured_costs(tmp_path, Costs())


def test_the_command_prints_the_plan_and_writes_it(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    argv = ["--commits", "30", "--pythons", "4", "--macos", "3", "--builders", "4", "--testers", "3"]

    assert main("plan_fleet", [*argv, "--json", str(tmp_path / "plan.json")]) == 0

    document = json.loads((tmp_path / "plan.json").read_text(encoding="utf-8"))
    assert document["plan"]["core_minutes"] == pytest.approx(14_329, abs=1)
    assert document["best"]["whole_minutes"] <= document["plan"]["whole_minutes"]
    out = capsys.readouterr().out
    assert "bottleneck" in out
    assert "assumed" in out


@pytest.mark.parametrize("argv", [["--commits", "0"], ["--builders", "x"], ["--hits", "1.5"], ["--receipts", "nope"]])
def test_numbers_that_cannot_be_are_refused(argv: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert main("plan_fleet", argv) == 2
    assert "error:" in capsys.readouterr().err


@pytest.mark.parametrize(("commits", "hours"), [(1, 2), (7, 5), (30, 24)])
def test_the_macs_needed_are_the_fewest_that_do(commits: int, hours: float) -> None:
    shape = Shape(commits=commits, pythons=4, macos=3, builders=1, testers=1)

    found = macs_needed(shape, Costs(), minutes=hours * 60)

    assert found is not None and found.whole_minutes <= hours * 60
    one_fewer = found.shape.builders + found.shape.testers - 1
    if one_fewer > 1:
        by_hand = best_shape(Shape(commits=commits, pythons=4, macos=3, builders=1, testers=one_fewer - 1), Costs())
        assert by_hand.whole_minutes > hours * 60


def test_how_many_macs_is_a_number(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    answer = tmp_path / "plan.json"

    assert main("plan_fleet", ["--commits", "30", "--within", "24", "--json", str(answer)]) == 0

    document = json.loads(answer.read_text(encoding="utf-8"))
    assert document["macs_needed"] == document["needed"]["builders"] + document["needed"]["testers"]
    assert f"Macs needed for all of it within 24 h: {document['macs_needed']} (" in capsys.readouterr().out
    assert macs_needed(Shape(commits=1, pythons=1, macos=1, builders=1, testers=1), Costs(), minutes=1) is None
