"""Where a build's time went: ninja's logs of every version, graphs, the critical path, levers, the picture.

`tests/recorded/ninja_logs` holds logs of real builds (of several outputs of one step two are kept).
"""

from __future__ import annotations

import json
import re
import shutil
from pathlib import Path
from xml.etree import ElementTree

import pytest
from mps_build import cli
from mps_build.wheel_build.report.analysis import Times, analyse, levers, read_results
from mps_build.wheel_build.report.ninja_files import BuildLog, parse_graph, read_graph, read_log
from mps_build.wheel_build.report.page import chart

RECORDED = Path(__file__).parents[3] / "recorded" / "ninja_logs"
NANO = 1_000_000_000


def log_text(version: int, *lines: tuple[int, int, int, str, str]) -> str:
    return f"# ninja log v{version}\n" + "".join("\t".join(map(str, line)) + "\n" for line in lines)


def read(text: str) -> BuildLog:
    log = read_log(text)
    assert log is not None
    return log


def at(second: float) -> int:
    """Return a stamp in nanoseconds, some day in 2026."""
    return int((1_795_000_000 + second) * NANO)


def recorded(name: str, folder: Path) -> Path:
    """Return a build folder as ninja leaves it, with a recorded log and its graph."""
    build = folder / name
    build.mkdir()
    shutil.copy(RECORDED / name / "ninja_log", build / ".ninja_log")
    if (RECORDED / name / "build.ninja").is_file():
        shutil.copy(RECORDED / name / "build.ninja", build)
    return build


def test_several_outputs_of_one_step_are_one_step() -> None:
    log = read(log_text(7, (0, 900, at(0), "a.h", "1"), (0, 900, at(0), "b.h", "1"), (0, 500, at(0), "c.h", "2")))

    assert [(step.outputs, step.seconds) for step in log.runs[0].steps] == [(("c.h",), 0.5), (("a.h", "b.h"), 0.9)]
    assert log.runs[0].most_at_once() == 2


def test_runs_of_version_5_part_where_a_step_ends_before_the_one_above() -> None:
    lines = [(0, 100, 5, "a", "1"), (50, 200, 5, "b", "2"), (0, 150, 5, "c", "3"), (150, 300, 5, "d", "4")]
    log = read(log_text(5, *lines))

    assert [[step.name for step in run.steps] for run in log.runs] == [["a", "b"], ["c", "d"]]


def test_a_rewritten_log_of_version_5_is_one_run_and_says_so() -> None:
    lines = [(0, 1000 - 10 * number, 5, f"o{number}", str(number)) for number in range(40)]
    log = read(log_text(5, *lines))

    assert len(log.runs) == 1
    assert "cannot be separated" in log.notes[0]


def test_runs_from_version_6_on_are_recognised_by_the_moment_they_began_in_any_order() -> None:
    first = [(0, 9000, at(0), "a", "1"), (9000, 12000, at(9), "b", "2")]
    second = [(0, 13000, at(100), "c", "3"), (13000, 14000, at(113), "d", "4")]  # never ends before the line above
    inputs = (0, 20000, at(100 + 19.5), "restat", "5")  # stamps its output's time, late in its own
    log = read(log_text(6, second[1], *first, inputs, second[0]))

    assert [sorted(step.name for step in run.steps) for run in log.runs] == [["a", "b"], ["c", "d", "restat"]]
    assert [round(run.wall) for run in log.runs] == [12, 20]


def test_what_was_made_again_counts_once_in_the_last_and_is_reported() -> None:
    log = read(log_text(7, (0, 4000, at(0), "a", "1"), (0, 1000, at(50), "a", "9"), (1000, 1500, at(51), "b", "2")))

    assert log.last_steps()["a"].seconds == 1.0
    assert log.done_again() == 4.0


def test_a_second_head_and_a_line_cut_short_do_no_harm() -> None:
    text = log_text(5, (0, 100, 5, "a", "1")) + log_text(7, (0, 200, at(9), "b", "2")) + "300\t40"
    log = read(text)

    assert (log.version, sum(len(run.steps) for run in log.runs)) == (7, 2)
    assert log.notes == ("1 lines of the log are not entries and were left out",)


def test_logs_of_unknown_versions_and_other_texts_are_no_logs() -> None:
    assert read_log(log_text(4, (0, 100, 5, "a", "1"))) is None
    assert read_log(log_text(8, (0, 100, 5, "a", "1"))) is None
    assert read_log("hello") is None


def times_of(name: str, folder: Path) -> Times:
    build = recorded(name, folder)
    return analyse(read((build / ".ninja_log").read_text()), read_graph(build))


def test_the_real_bindings_build_its_phases_and_its_critical_path(tmp_path: Path) -> None:
    times = times_of("v2.6.0-bindings", tmp_path)

    assert (round(times.wall, 1), round(times.busy, 1), times.jobs) == (2883.1, 5701.8, 2)
    assert {group.name: group.steps for group in times.phases} == {
        "codegen": 7,
        "precompiled header": 1,
        "compile": 158,
        "link": 7,
        "install": 1,
    }
    assert times.critical is not None
    assert [step.name.rpartition("/")[2] for step in times.critical] == [
        "Functions.cpp",
        "cmake_pch.hxx.pch",
        "init.cpp.o",
        "libtorch_python.so",
        "libnnapi_backend.so",
        "install.util",
    ]
    assert round(times.critical_seconds or 0, 1) == 673.7
    assert times.scheduled[2] < (times.as_ordered or 0) <= times.wall
    assert times.scheduled[8] >= (times.critical_seconds or 0)


@pytest.mark.parametrize(
    ("name", "runs"),
    [
        ("v2.6.0-rewritten", [(551.4, 157), (17.3, 6), (125.8, 15)]),
        ("v1.13.1-darwin", [(361.5, 71), (323.0, 64), (4.8, 1)]),
        ("v2.6.0-darwin", [(282.9, 93), (1047.8, 83)]),
    ],
)
def test_the_runs_of_real_logs_are_distinguished(name: str, runs: list[tuple[float, int]], tmp_path: Path) -> None:
    times = times_of(name, tmp_path)

    assert [(round(wall, 1), steps) for wall, _, steps in times.runs] == runs


def test_a_ratio_on_record_becomes_a_saving_and_one_that_is_not_is_named_without(tmp_path: Path) -> None:
    times = analyse(
        read(log_text(7, (0, 8000, at(0), "c10/CMakeFiles/c10.dir/a.cpp.o", "1"), (0, 8000, at(0), "codegen.h", "2"))),
        None,
    )
    results = tmp_path / "results.json"
    results.write_text(json.dumps([{"name": "compile.develop_ratio", "median": 0.25, "machine": "M"}, {"name": "odd"}]))
    found = {lever.name: lever for lever in levers(times, read_results(results))}

    assert found["the develop profile, same -O level"].saves == pytest.approx(8.0 * 0.75 / 2)  # two were busy
    assert (
        found["the develop profile, same -O level"].source
        == "compile.develop_ratio = 0.25 in benchmarks/results.json (M)"
    )
    assert found["a warm compiler cache"].saves is None
    assert "cache.warm_ratio has not been measured" in found["a warm compiler cache"].source
    assert "a warm compiler cache" not in {each.name for each in levers(times, {}, cache_used=True)}


def test_ratios_of_pytorch_are_not_claimed_of_another_project() -> None:
    times = analyse(read(log_text(7, (0, 8000, at(0), "CMakeFiles/mine.dir/a.cpp.o", "1"))), None)

    assert levers(times, {"compile.develop_ratio": {"median": 0.25}}) == ()


def test_the_picture_is_sound_svg_with_every_long_step_and_the_critical_path(tmp_path: Path) -> None:
    times = times_of("v2.6.0-bindings", tmp_path)
    root = ElementTree.fromstring(chart(times))
    bars = [each for each in root.iter("{http://www.w3.org/2000/svg}rect") if len(each)]

    assert len(bars) >= 170
    assert sum(each.get("class") == "critical" for each in bars) == len(times.critical or ())
    for bar in bars:
        assert float(bar.get("x", "0")) + float(bar.get("width", "0")) <= 1040.5


def test_only_the_last_making_of_a_step_is_outlined() -> None:
    again = read(log_text(7, (0, 4000, at(0), "a", "1"), (0, 1000, at(50), "a", "9")))
    times = analyse(again, parse_graph("build a: C b\n"))

    assert [(placed.step.seconds, placed.is_critical) for placed in times.placed] == [(4.0, False), (1.0, True)]


def test_the_session_writes_table_page_picture_and_document(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    build = recorded("v2.6.0-bindings", tmp_path)
    page, picture, answer = tmp_path / "p.html", tmp_path / "p.svg", tmp_path / "a.json"
    status = cli.main("build_report", [str(build), "--html", str(page), "--svg", str(picture), "--json", str(answer)])

    printed, document = capsys.readouterr().out, json.loads(answer.read_text())
    assert status == 0
    assert "48 min 03 s of ninja" in printed
    assert document["critical_path"]["seconds"] == pytest.approx(673.7, abs=0.1)
    assert "8 jobs in place of 2" in {lever["name"] for lever in document["levers"]}  # the order follows our figures
    assert any("first configure" in note for note in document["notes"])
    assert picture.read_text().startswith("<svg")
    assert not re.findall(r"(?:src|href)=", page.read_text())


def test_without_a_build_file_the_critical_path_is_said_to_be_unknown(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    build = recorded("v2.6.0-rewritten", tmp_path)
    status = cli.main("build_report", [str(build), "--json", str(tmp_path / "a.json"), "--run", "last"])

    assert status == 0
    assert "the critical path is unknown without build.ninja" in capsys.readouterr().out
    document = json.loads((tmp_path / "a.json").read_text())
    assert (document["critical_path"], len(document["runs"]), document["runs"][0]["steps"]) == (None, 1, 15)


def test_receipts_add_the_steps_around_ninja_and_the_cache(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    root = tmp_path / "v2.6.0"
    (root / "receipts").mkdir(parents=True)
    (root / "build").mkdir()
    recorded("v2.6.0-bindings", root / "build").rename(root / "build" / "release")
    for name, seconds, facts in (
        ("configure-release-3.12", 61.0, {}),
        ("compile_wheel-release-3.12", 2999.0, {"cache": {"hits": 90, "misses": 10}}),
    ):
        document = {"step": name.partition("-")[0], "seconds": seconds, "facts": facts, "started": f"2026-{name}"}
        (root / "receipts" / f"{name}.json").write_text(json.dumps(document))
    (root / "receipts" / "damaged.json").write_text("{")
    monkeypatch.setenv("MPS_BUILD_WORK", str(tmp_path))
    answer = tmp_path / "a.json"

    assert cli.main("build_report", ["v2.6.0", "--json", str(answer)]) == 0
    printed, document = capsys.readouterr().out, json.loads(answer.read_text())
    assert "Compiler cache: 90 hits (90%), 10 misses" in printed
    assert {row["step"]: row["seconds"] for row in document["steps"]} == {
        "configure-release-3.12": 61.0,
        "compile_wheel-release-3.12": 2999.0,
    }
    assert cli.main("build_report", []) == 0  # the last build is found by itself


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["{tmp}/none/such"], "no such folder"),
        (["{tmp}"], "holds no .ninja_log, and no folder below it"),
        (["{tmp}/text"], "is not a ninja log of version 5 to 7: it begins with 'hello'"),
        (["{tmp}/empty"], "it begins with 'nothing'"),
        (["{tmp}/head"], "holds no step"),
        (["{tmp}/good", "--run", "3"], "--run 3: the log holds 1 runs"),
        (["{tmp}/good", "--run", "x"], "--run x: the log holds 1 runs"),
        (["{tmp}/good", "--html", "{tmp}/good/.ninja_log/x.html"], "cannot be written"),
        (["v9.9.9"], "no recipe 'v9.9.9'"),
        (["v2.6.0"], "was not built here"),
        ([], "nothing was built in"),
    ],
)
def test_bad_input_says_what_is_wrong(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    arguments: list[str],
    said: str,
) -> None:
    monkeypatch.setenv("MPS_BUILD_WORK", str(tmp_path / "work"))
    texts = {"text": "hello\n", "empty": "", "head": "# ninja log v7\n"}
    if arguments != ["{tmp}"]:
        for name, text in (texts | {"good": log_text(7, (0, 10, at(0), "a", "1"))}).items():
            (tmp_path / name).mkdir()
            (tmp_path / name / ".ninja_log").write_text(text)

    assert cli.main("build_report", [each.format(tmp=tmp_path) for each in arguments]) == 2
    error = capsys.readouterr().err
    assert said in error
    assert "Traceback" not in error
