"""An operator that no case dispatches is refused at once, with the nearest names."""

from __future__ import annotations

from pathlib import Path

import pytest
from mps_build.cli import main
from mps_build.common.errors import UsageError
from mps_build.verify.operators import check_names, check_operator


@pytest.fixture(name="suite")
def _suite(tmp_path: Path) -> Path:
    (tmp_path / "operators").mkdir()
    (tmp_path / "operators" / "binary.py").write_text("names = 'add addmm softmax'\n", encoding="utf-8")
    text = 'cases.case("issue-1-row")\nfor name in WORDS:\n    cases.add(f"issue-2-{name}", "neural-" + name)\n'
    (tmp_path / "test_new.py").write_text(text, encoding="utf-8")
    return tmp_path


@pytest.mark.parametrize("name", ["aten.add.Tensor", "aten.add", "add", "aten::add", None])
def test_an_overload_or_all_overloads_of_an_operator_are_accepted(suite: Path, name: str | None) -> None:
    check_operator(name, suite)


@pytest.mark.parametrize("name", ["nosuch", "aten.sofmax", "adddmm"])
def test_an_unknown_operator_is_refused_with_what_looks_like_it(suite: Path, name: str) -> None:
    with pytest.raises(UsageError, match="the suite does not describe it") as caught:
        check_operator(name, suite)

    near = {"nosuch": "names are those", "aten.sofmax": "softmax", "adddmm": "addmm"}[name]
    assert near in str(caught.value.hint)


def test_a_suite_without_descriptions_is_asked_case_by_case(tmp_path: Path) -> None:
    check_operator("nosuch", tmp_path)
    check_names(("nosuch",), tmp_path)


def test_ids_ids_that_are_made_at_import_patterns_and_drawn_cases_are_accepted(suite: Path) -> None:
    check_names(("issue-1-row", "issue-2-new", "neural-lstm", "no-such-*", "add:layout:3"), suite)


@pytest.mark.parametrize("name", ["issue-1-rwo", "issue-3-row"])
def test_one_wrong_name_among_right_ones_is_refused_with_what_looks_like_it(suite: Path, name: str) -> None:
    with pytest.raises(UsageError, match=f"--only {name}: no case has this id") as caught:
        check_names(("issue-1-row", name), suite)

    assert "did you mean" in str(caught.value.hint)


def test_a_wrong_name_is_refused_before_an_environment_is_made(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("MPS_BUILD_WORK", str(tmp_path / "work"))
    monkeypatch.setenv("MPS_BUILD_CACHE", str(tmp_path / "cache"))

    assert main("verify_mps", ["torch==2.13.0", "--device", "cpu", "--only", "issue-131750*,no-such-case"]) == 2

    told = capsys.readouterr()
    assert "--only no-such-case: no case has this id" in told.err
    assert "Prepare the Python under test" not in told.out


def test_the_next_command_names_the_record_and_the_first_failure(tmp_path: Path) -> None:
    from mps_build.common.records.device_record import Case
    from mps_build.verify.judgement import judge_run
    from mps_build.verify.suite.run import SuiteRun

    run = SuiteRun()
    run.cases.append(Case(id="issue-1-row", layer="regressions", outcome="passed"))
    run.cases.append(Case(id="suite::outside", layer="layouts", outcome="failed", reason="no disk"))
    event = judge_run(run, device="mps", record=tmp_path / "my record.json")
    run.cases.append(Case(id="layout-add-input", layer="layouts", outcome="failed"))

    judged = judge_run(run, device="mps", record=tmp_path / "my record.json")

    assert event.hint == "what failed is no case: suite::outside: no disk"
    assert judged.hint is not None
    assert f"nox -s repro -- '{tmp_path}/my record.json' layout-add-input" in judged.hint
