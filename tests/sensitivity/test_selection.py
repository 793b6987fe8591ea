"""Which cases a process asks: parts of the suite, and what only `--full` lists."""

from __future__ import annotations

import pytest

from device_suite.cases import Cases
from device_suite.selection import Selection, Shard
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
