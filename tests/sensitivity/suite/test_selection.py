"""Which cases a process asks: parts of the suite, and what only `--full` lists."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch

import operators
from engine.cases import Cases
from engine.runs import Bench
from engine.selection import Selection, Shard, load_done, quick_cases
from engine.states import run_case
from suite_in_process import Suite


def _chosen(cases: Cases, shard: str, *, full: bool = False) -> list[str]:
    selection = Selection(only="", after="", without="", shard=Shard.of(shard))
    return [case.id for case in selection.choose(cases.listed(full=full))]


def _some() -> Cases:
    cases = Cases("regressions")
    for case in Suite(["regressions"]).cases[:200]:
        cases.add(case.id, case.act)
    return cases


def test_every_case_is_of_one_part() -> None:
    cases = _some()
    parts = [_chosen(cases, f"{part}/3") for part in range(3)]

    assert all(parts)
    assert sorted(one for part in parts for one in part) == sorted(case.id for case in cases)


@pytest.mark.parametrize("text", ["3/3", "1", "-1/2", "a/b", "0/0"])
def test_a_part_that_is_none_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="--shard"):
        Shard.of(text)


def test_a_quiet_case_is_listed_with_full_only() -> None:
    cases = Cases("smoke")
    cases.add("smoke-loud", lambda: 0, full=True)
    cases.add("smoke-quiet", lambda: 0, full=True, quiet=True)

    assert _chosen(cases, "") == ["smoke-loud"]
    assert _chosen(cases, "", full=True) == ["smoke-loud", "smoke-quiet"]


def test_quick_takes_smoke_what_is_drawn_and_the_parts_of_one_issue() -> None:
    found = {}
    for layer in ("smoke", "regressions", "scenarios", "drawn"):
        cases = Cases(layer)
        for name, issues in (("a", ("82707",)), ("b", ("1", "82707")), ("c", ("2",)), ("d", ())):
            cases.add(f"{layer}-{name}", lambda: 0, issues=issues)
        cases.add(f"{layer}-large", lambda: 0, issues=("82707",), full=True)
        cases.add(f"{layer}-net", lambda: 0, issues=("82707",), terms=4096)
        cases.add(f"{layer}-long", lambda: 0, issues=("82707",), limit_seconds=600.0)
        found[layer] = [case.id.rpartition("-")[2] for case in quick_cases(list(cases))]

    assert found == {
        "smoke": ["a", "b", "c", "d", "large", "net", "long"],
        "regressions": ["a", "b"],
        "scenarios": [],
        "drawn": ["a", "b", "c", "d", "large", "net", "long"],
    }


def test_quick_asks_no_other_shape_between() -> None:
    cases = Cases("regressions")
    cases.add("a", lambda: 0, issues=("82707",), states=("fresh", "other"))

    assert [case.states for case in quick_cases(list(cases))] == [("fresh",)]


def test_only_the_layers_that_are_named_are_run() -> None:
    cases = _some()
    every = cases.listed(full=False)

    assert Selection(only="", after="", without="", layers=("drawn",)).choose(every) == []
    assert Selection(only="", after="", without="", layers=("drawn", "regressions")).choose(every) == every


def test_one_wrong_name_among_right_ones_is_named_with_what_looks_like_it() -> None:
    ids = ["issue-1-row", "issue-1-rows", "issue-2"]

    assert Selection(only="issue-2, issue-*", after="", without="").unknown(ids) == ""
    # What the driver writes of an id that not every release has: a table of releases ended at torch 1.12.1.
    assert Selection(only="[l]ayout-9,[l]ayout-*", after="", without="").unknown(ids) == ""
    assert Selection(only="issue-[89]", after="", without="").unknown(ids).startswith("--only issue-[89]: no case")
    said = Selection(only="issue-2,issue-1-rwo", after="", without="").unknown(ids)
    assert said == "--only issue-1-rwo: no case has this id; did you mean issue-1-row, issue-1-rows?"
    assert Selection(only="issue-1-*,no_such:*", after="", without="").unknown(ids).startswith("--only no_such:*: no ")


def test_what_an_interrupted_run_has_run_is_left_out(tmp_path: Path) -> None:
    cases = _some()
    ids = [case.id for case in cases]
    (tmp_path / "done.json").write_text(f'["{ids[0]}", "{ids[2]}"]')

    left = Selection(only="", after="", without="", done=load_done(str(tmp_path / "done.json")))

    assert [case.id for case in left.choose(cases.listed(full=False))] == [ids[1], *ids[3:]]
    (tmp_path / "done.json").write_text("{}")
    with pytest.raises(ValueError, match="--done takes"):
        load_done(str(tmp_path / "done.json"))


def test_what_is_described_is_listed_with_its_file() -> None:
    lines = operators.listing().splitlines()

    assert "operators/searching.py: Counting and searching: histograms, buckets, membership." in lines
    listed = [name for line in lines if line[0] == " " for name in line.strip().rstrip(",").split(", ")]
    assert sorted(listed) == sorted(operators.described())


def test_a_case_takes_back_the_default_device_that_it_set() -> None:
    """With "cpu" left behind, random-out-choices failed on mps in whole runs, and passed by itself."""
    case = next(one for one in Suite(["regressions"]).cases if one.id == "issue-149184")
    run_case(case, Bench(torch.device("cpu")))

    assert torch.utils._device.CURRENT_DEVICE is None
