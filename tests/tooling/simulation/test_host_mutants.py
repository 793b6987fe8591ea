"""Mutants of the host code: which are drawn, and what the answers of cases say of one."""

from __future__ import annotations

import doctest
import json
import os
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
from mutants import coverage_library, judge, text, toolchain, trial
from mutants.child import Answers, Hang, cpu_seconds
from mutants.coverage_library import blocks_at, lines_of
from mutants.draw import Mutant, drawn
from mutants.judge import Usual, by_suite_seed, changed, figures, in_order, sound, usual, verdict, weightiest
from mutants.plan import MOST_SECONDS, chosen, reached
from mutants.recording import blocks_of, folder_of, hold_to_suite
from mutants.tables import document, page, read_rows
from mutants.toolchain import read_toolchain


@pytest.mark.parametrize("module", [text, coverage_library, toolchain, judge])
def test_what_a_docstring_shows_is_so(module: ModuleType) -> None:
    found = doctest.testmod(module)

    assert found.attempted
    assert not found.failed


def many(files: int, places: int) -> list[Mutant]:
    return [
        Mutant(f"{file}.mm:{place}:{rule}", f"mps/{file}.mm", rule, place, place + 1, "a", "b", (place, place))
        for file in range(files)
        for place in range(1, 1 + places * (1 + 9 * (file == 0)))
        for rule in ("cast", "flag")
    ]


def test_a_draw_takes_every_file_first_and_spreads_over_rules() -> None:
    found = drawn(many(20, 3), 60, seed=1)

    assert len({mutant.id for mutant in found}) == 60
    assert {mutant.file for mutant in found[:20]} == {f"mps/{file}.mm" for file in range(20)}
    assert abs(sum(mutant.rule == "cast" for mutant in found) - 30) <= 2
    assert found == drawn(reversed(many(20, 3)), 60, seed=1)
    assert [one.id for one in found] != [one.id for one in drawn(many(20, 3), 60, seed=2)]


def test_a_third_is_held_back_and_a_tenth_tried_with_everything() -> None:
    found = drawn(many(60, 10), 900, seed=3)

    assert 250 <= sum(mutant.held for mutant in found) <= 350
    assert 60 <= sum(mutant.whole for mutant in found) <= 125


def row(name: str, outcome: str = "passed", digest: str = "d", **more: Any) -> dict[str, Any]:
    return {"id": name, "outcome": outcome, "digest": digest, "seconds": 0.1, **more}


def cases(*names: str, quick: str = "") -> dict[str, Usual]:
    listed = [("test_smoke.py", name, name == quick) for name in names]
    return usual(listed, [{name: row(name) for name in names}] * 2)


def test_a_case_tells_only_if_it_passes_in_every_run() -> None:
    listed = [("f.py", name, False) for name in ("good", "flaky", "bits", "fails", "once")]
    one = {name: row(name) for name in ("good", "flaky", "bits", "once")} | {"fails": row("fails", "failed")}
    two = {**one, "flaky": row("flaky", "failed"), "bits": row("bits", digest="e")}
    del two["once"]

    found = usual(listed, [one, two])

    assert {name for name, case in found.items() if case.tells} == {"good", "bits"}
    assert {name for name, case in found.items() if case.digest is not None} == {"good", "fails"}


def test_quick_cases_run_first_and_then_the_cheapest() -> None:
    known = {
        **cases("a", "b", quick="b"),
        "c": Usual("f.py", "c", quick=False, tells=True, outcome="passed", seconds=0.01, digest="d"),
    }

    assert [case.id for case in in_order(known.values())] == ["b", "c", "a"]


def test_verdicts() -> None:
    known = cases("a", "b", quick="a")

    assert verdict([row("a")], "a", [], known)["outcome"] == "quick"
    assert verdict([row("a"), row("b")], "b", [], known)["outcome"] == "whole"
    assert verdict([row("a"), row("b")], None, [], known)["outcome"] == "equivalent"
    assert verdict([row("a"), row("b")], None, ["b"], known) == {"outcome": "missed", "changed": 1, "examples": ["b"]}
    assert verdict([], None, [], known)["outcome"] == "not_reached"


def test_a_steady_case_that_answers_other_bits_or_ends_otherwise_has_changed() -> None:
    known = {**cases("a", "b", "c"), **usual([("f.py", "flaky", False)], [{"flaky": row("flaky")}, {}])}
    rows = [row("a"), row("b", digest="e"), row("c", "skipped"), row("flaky", digest="e")]

    assert changed(rows, known) == ["b", "c"]


def test_a_mutant_that_runs_as_several_macos_is_caught_by_any() -> None:
    found = [{"outcome": name} for name in ("missed", "whole", "equivalent")]

    assert weightiest(found) == {"outcome": "whole"}
    assert weightiest(found[::2]) == {"outcome": "missed"}
    assert weightiest([*found, {"outcome": "own_fault"}]) == {"outcome": "own_fault"}


def test_the_shares_are_of_mutants_that_change_a_result() -> None:
    counts = {"quick": 6, "whole": 2, "missed": 2, "equivalent": 50, "not_reached": 7, "not_compiled": 3}
    found = figures({"outcome": name} for name, count in counts.items() for _ in range(count))

    assert (found.effective, found.caught, found.caught_by_quick) == (10, 8, 6)


def test_a_catch_by_an_unsteady_case_is_none() -> None:
    rows: list[dict[str, Any]] = [
        {"id": "a", "outcome": "whole", "case": "wavers"},
        {"id": "b", "outcome": "quick", "case": "firm", "unreliable": ["wavers"]},
        {"id": "c", "outcome": "whole", "case": "firm", "outside_map": True},
        {"id": "d", "outcome": "whole", "case": "firm", "outside_map": True, "again": 3},
    ]

    assert [row["id"] for row in sound(rows)] == ["b", "d"]
    assert [row["outcome"] for row in sound([*rows, {"id": "a", "outcome": "missed"}])] == ["missed", "quick", "whole"]


@pytest.mark.parametrize(
    ("mutated", "unchanged", "expected"),
    [
        (["failed"] * 3, ["passed"] * 3, True),
        (["failed", "passed", "failed"], ["passed"] * 3, False),
        (["failed"] * 3, ["passed", "failed", "passed"], False),
        (["crashed"] * 3, ["passed"] * 3, True),
    ],
)
def test_a_failure_has_to_come_again_and_only_with_the_mutant(
    mutated: list[str], unchanged: list[str], expected: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    left = {Path("mutated"): iter(mutated), Path("unchanged"): iter(unchanged)}

    def ask_all(cases: Any, folder: Path, *, library: Path, **_: Any) -> Answers:
        return Answers([{"id": cases[-1].id, "outcome": next(left[library])}])

    monkeypatch.setattr(trial, "ask_all", ask_all)
    case = cases("a")["a"]

    assert trial._holds(case, [[case]], Path("mutated"), Path("unchanged"), "15.2", 0.0, 3) is expected


@pytest.mark.parametrize(
    ("used", "looks", "hangs"),
    [
        ([40.0], [150.0], False),  # the machine is busy: a case of 30 CPU seconds takes minutes there
        ([40.0, 79.0, 149.0], [150.0, 300.0, 450.0], False),
        ([40.0, 79.0, 161.0], [150.0, 300.0, 450.0], True),  # it computes without an end
        ([10.5], [150.0], True),  # it waits for what does not come
        ([60.0, 60.5], [150.0, 300.0], True),
    ],
)
def test_a_case_hangs_by_the_cpu_it_uses_and_not_by_the_wall_of_a_busy_machine(
    used: list[float], looks: list[float], hangs: bool
) -> None:
    hang = Hang(150.0, 10.0, 0.0)
    found = []

    for seconds, now in zip(used, looks, strict=True):
        assert hang.look == now
        found.append(hang.has_come(seconds, now))

    assert found == [False] * (len(used) - 1) + [hangs]


def test_the_cpu_time_of_a_process_is_read() -> None:
    assert cpu_seconds(os.getpid()) > 0
    assert cpu_seconds(2**22 + 1) == 0  # no process has this id


def test_a_line_belongs_to_the_block_that_it_lies_in() -> None:
    table = "Eye.mm:\nEye.mm   10   0x100   x\nEye.mm   11   0x108\nEye.mm   12   0x120   x\nOther.h  5  0x121\n"

    lines = lines_of(table, [0x120, 0x100], ["native/mps/operations/Eye.mm"])

    assert lines == {"native/mps/operations/Eye.mm": {10: [1], 11: [1], 12: [0]}}
    assert blocks_at(lines, "native/mps/operations/Eye.mm", 10, 12) == {0, 1}
    assert blocks_at(lines, "native/mps/operations/Eye.mm", 15, 15) == {0}
    assert blocks_at(lines, "native/mps/operations/Eye.mm", 5, 5) == set()


def test_the_map_tells_cases_from_what_a_start_runs() -> None:
    rows = [
        {"id": "", "blocks": "eJxjAQAABQAF"},  # zlib of b"\x04": block 2
        {"id": "a", "blocks": "eJxjBAAAAgAC"},  # of b"\x01": block 0
        {"id": "b", "blocks": ""},
    ]

    assert [blocks_of(each) for each in rows] == [4, 1, 0]
    assert reached(rows, {"m": {0, 1}, "n": {2}}) == ({"m": ["a"], "n": []}, {"n"})


def a_mutant(**fields: Any) -> Mutant:
    values = {"file": "mps/X.mm", "rule": "cast", "start": 0, "end": 1, "old": "a", "new": "b", "lines": (1, 1)}
    return Mutant("X.mm:1:cast:0", **{**values, **fields})


def test_the_cases_of_its_lines_run_against_a_mutant_and_of_a_tenth_all() -> None:
    known = cases("a", "b", "c", quick="c")

    mapped = chosen(a_mutant(), ["a"], known, macos="15.2", seed=1, starts=False)
    whole = chosen(a_mutant(whole=True), ["a"], known, macos="15.2", seed=1, starts=False)
    start = chosen(a_mutant(), [], known, macos="15.2", seed=1, starts=True)

    assert (mapped.cases, mapped.by_map) == (("a",), 1)
    assert whole.cases == ("a", "c", "b")
    assert set(start.cases) == {"a", "b", "c"}


def test_of_lines_that_all_cases_run_a_draw_of_them_is_tried() -> None:
    known = {
        str(number): Usual("f.py", str(number), number < 5, tells=True, outcome="passed", seconds=1.0, digest="d")
        for number in range(2000)
    }

    plan = chosen(a_mutant(), list(known), known, macos="15.2", seed=1, starts=False)

    assert set(plan.cases) >= {"0", "1", "2", "3", "4"}
    assert len(plan.cases) == MOST_SECONDS
    assert plan == chosen(a_mutant(), list(known), known, macos="15.2", seed=1, starts=False)


def test_a_mutant_is_compiled_once_for_all_seeds_of_the_suite(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    source, plain = tmp_path / "aten/src/ATen/mps/X.mm", tmp_path / "objects/X.mm.o"
    for file, content in ((source, "abc"), (plain, "unchanged")):
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(content)
    build = toolchain.Toolchain(tmp_path, (), (), (), (), {"objects/X.mm.o": source}, ("objects/X.mm.o",))
    compiled: list[str] = []

    def compile_one(_: Any, edited: Path, target: Path, extra: Any) -> None:
        compiled.append(edited.read_text())
        target.write_text("changed")

    monkeypatch.setattr(toolchain.Toolchain, "compile", compile_one)

    for seed in (0, 1):
        found = trial.tried(a_mutant(), [], {}, build, tmp_path / str(seed), 0.0, tmp_path / "kept")
        assert found["outcome"] == "not_reached"
    assert compiled == ["bbc"]

    [kept] = (tmp_path / "kept").iterdir()
    os.utime(plain, (kept.stat().st_mtime + 9,) * 2)  # built anew since: by other flags perhaps
    trial.tried(a_mutant(), [], {}, build, tmp_path / "2", 0.0, tmp_path / "kept")
    assert compiled == ["bbc", "bbc"]


def judged(name: str, outcome: str, *, held: bool = False) -> dict[str, Any]:
    mutant = Mutant(name, "mps/X.mm", "cast", 0, 1, f"old_{name}", "new", (3, 3), held=held)
    return {**mutant.as_json(), "outcome": outcome, "cpu_seconds": 36.0}


def test_the_misses_that_are_held_back_are_counted_and_not_listed() -> None:
    rows = [judged("open", "missed"), judged("hidden", "missed", held=True), judged("good", "quick")]

    assert "old_open" in page(rows)
    assert "old_hidden" not in page(rows)
    assert "of it 1 mutant was missed" in page(rows)
    assert "old_hidden" in page(rows, held=True)
    assert "Of 3 that change a result,\n1 are caught (33.3%)" in page(rows)
    assert "Of the third that is held back, 1 change a result: 0 are caught, 0 by" in page(rows)
    assert "missed at first" not in page(rows)
    assert "\n1 of those caught were missed at first" in page([*rows, judged("open", "whole")])


def test_a_page_of_few_mutants_has_no_shares() -> None:
    rows = [judged("open", "missed"), judged("good", "quick")]

    many = [judged(f"{number}", ("missed", "quick")[number % 2]) for number in range(60)]

    assert document(rows, "2.6.0", "").startswith("# Mutants of the MPS host code\n")
    assert document(rows, "2.6.0", "").endswith("a run is of 60 mutants or more, and 2 are on record.\n")
    assert "%" not in document(rows, "2.6.0", "")
    assert "(50.0%)" in document(many, "2.6.0", "")
    assert "0.60 CPU hours (16 cores)" in document(many, "2.6.0", "16 cores")


def test_each_seed_of_the_suite_has_its_shares_and_its_misses() -> None:
    at_0 = [judged("always", "quick"), judged("open", "missed"), judged("quiet", "equivalent")]
    at_1 = [
        {**row, "suite_seed": 1}
        for row in (judged("always", "quick"), judged("open", "whole"), judged("quiet", "missed"))
    ]

    found = page([*at_1, *at_0])

    assert "3 change a result at one of them at least" in found
    assert "| 0 | 3 | 2 | 1 | 50.0% (9.5% to 90.5%) | 1 | 50.0% (9.5% to 90.5%) |" in found
    assert "| 1 | 3 | 3 | 2 | 66.7% (20.8% to 93.9%) | 1 | 33.3% (6.1% to 79.2%) |" in found
    assert "## By rule at `--seed 0` of the suite\n" in found
    assert "| 0 | `mps/X.mm:3` | cast | `old_open`" in found
    assert "| 1 | `mps/X.mm:3` | cast | `old_quiet`" in found
    assert "At each seed" not in page(at_0)


def test_too_few_mutants_at_any_seed_give_no_shares() -> None:
    many = [judged(f"{number}", "quick") for number in range(60)]
    few = [{**row, "suite_seed": 1} for row in many[:59]]

    assert document([*many, *few], "2.6.0", "").endswith("and 59 are on record.\n")


def test_an_unsteady_case_at_one_seed_of_the_suite_leaves_the_others_rows() -> None:
    rows: list[dict[str, Any]] = [
        {"id": "a", "outcome": "whole", "case": "wavers"},
        {"id": "a", "outcome": "whole", "case": "firm", "suite_seed": 1},
        {"id": "b", "outcome": "quick", "case": "firm", "unreliable": ["wavers"]},
    ]

    assert {seed: [row["id"] for row in ones] for seed, ones in by_suite_seed(rows).items()} == {0: ["b"], 1: ["a"]}


def test_a_record_goes_on_with_the_suite_that_began_it_alone(tmp_path: Path) -> None:
    suite, home = tmp_path / "suite", folder_of(tmp_path / "home", 2)
    suite.mkdir()
    (suite / "test_a.py").write_text("cases = 1\n")

    hold_to_suite(home, suite)
    (suite / "test_a.py").write_text("cases = 2\n")
    hold_to_suite(home, suite)  # nothing is recorded yet
    (home / "cases.json").write_text("[]")
    hold_to_suite(home, suite)
    (suite / "test_b.py").write_text("")

    with pytest.raises(SystemExit, match=r"suite-seed-2 holds the record of another state of .*: give another HOME"):
        hold_to_suite(home, suite)


def test_a_record_that_was_cut_off_is_read_as_far_as_it_goes(tmp_path: Path) -> None:
    file = tmp_path / "mutants.jsonl"
    file.write_text(json.dumps(judged("a", "quick")) + '\n{"id": "b", "outc')

    assert [each["id"] for each in read_rows(file)] == ["a"]
    assert read_rows(tmp_path / "none.jsonl") == []


def test_the_commands_are_those_of_the_build(tmp_path: Path) -> None:
    (tmp_path / "build.ninja").write_text(
        "compiler = /r/clang --driver-mode=g++\nflags = -w '-DA=$$b' -I/x\n"
        "rule link\n  command = /r/clang -shared -o $out.part @$out.list -ltorch_cpu -ldl && mv $out.part $out\n"
        "build objects/a.mm.o: compile /t/aten/src/ATen/mps/A.mm\n  language = objective-c++\n"
        "build objects/graph.mm.o: compile /n/graph/graph.mm | objects/graph.pch\n"
        "build objects/k.c.o: compile_c /n/k.c\n"
    )

    found = read_toolchain(tmp_path)

    assert found.flags == ("-w", "-DA=$b", "-I/x")
    assert found.linker == ("/r/clang", "-shared")
    assert found.libraries == ("-ltorch_cpu", "-ldl")
    assert found.sources == {"objects/a.mm.o": Path("/t/aten/src/ATen/mps/A.mm")}
    assert found.objects == ("objects/a.mm.o", "objects/graph.mm.o", "objects/k.c.o")
