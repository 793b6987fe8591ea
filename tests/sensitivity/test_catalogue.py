"""The catalogue as a regression check: what the default budget caught of its injected faults it catches still.

The check of all is one test; it names each fault that is lost. How many there are: `nox -s benchmark -- drawn`.
"""

from __future__ import annotations

import json
import subprocess
import sys
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from catalogue import CAUGHT, ENTRIES, fault_of, load_faults

FAULTS = load_faults()
ISSUES = [row["issue"] for row in ENTRIES]


def test_entries_and_injected_faults_are_the_same() -> None:
    assert [issue for issue, count in Counter(ISSUES).items() if count > 1] == []
    assert sorted(map(fault_of, ISSUES)) == sorted(FAULTS)


def test_every_injected_fault_says_what_goes_wrong() -> None:
    assert sorted(name for name, faults in FAULTS.items() if len(faults.effects[name]) < 20) == []


def test_the_entries_are_those_of_the_rule() -> None:
    """Of PyTorch's MPS and CUDA back ends, or of a mechanism that none of these has."""
    ours = {(row["mechanism"], row["effect"]) for row in ENTRIES if row["origin"] in ("mps", "cuda")}
    others = [(row["mechanism"], row["effect"]) for row in ENTRIES if row["origin"] not in ("mps", "cuda")]

    assert ours.isdisjoint(others)
    assert len(others) == len(set(others))
    assert len(ENTRIES) < 450


def test_what_is_caught_is_of_the_catalogue() -> None:
    assert CAUGHT
    assert sorted(set(CAUGHT) - set(ISSUES)) == []


@pytest.fixture(scope="module")
def judged(tmp_path_factory: pytest.TempPathFactory) -> Any:
    """What judging.py finds in a process of its own: forked off this one, with its threads, a judge waits for ever."""
    found = tmp_path_factory.mktemp("judged") / "found.json"
    program = Path(__file__).with_name("judging.py")
    subprocess.run([sys.executable, str(program), "--only", ",".join(CAUGHT), "--json", str(found)], check=True)
    return json.loads(found.read_text(encoding="utf-8"))


def test_no_case_fails_without_a_fault(judged: Any) -> None:
    assert judged["alarms"] == []


def test_the_default_budget_catches_what_it_caught(judged: Any) -> None:
    rows = {row["fault"]: row["verdict"] for row in judged["sets"]["catalogue"]["rows"]}

    assert {issue: rows[issue] for issue in CAUGHT if rows[issue] != "caught"} == {}
