"""The command that a verdict ends with."""

from __future__ import annotations

from pathlib import Path

from mps_build.common.records.device_record import Case
from mps_build.verify.suite.outcomes import SuiteRun
from mps_build.verify.verdict import judge_run


def test_the_next_command_names_the_record_and_the_first_failure(tmp_path: Path) -> None:
    run = SuiteRun()
    run.cases.append(Case(id="issue-1-row", layer="regressions", outcome="passed"))
    run.cases.append(Case(id="suite::outside", layer="layouts", outcome="failed", reason="no disk"))
    event = judge_run(run, device="mps", record=tmp_path / "my record.json")
    run.cases.append(Case(id="layout-add-input", layer="layouts", outcome="failed"))

    judged = judge_run(run, device="mps", record=tmp_path / "my record.json")

    assert event.hint == "what failed is no case: suite::outside: no disk"
    assert judged.hint is not None
    assert f"nox -s repro -- '{tmp_path}/my record.json' layout-add-input" in judged.hint
