"""Classes of logs that triage once got wrong, each with a neighbour that it must not take; doctor's knowledge."""

from __future__ import annotations

from functools import cache
from pathlib import Path
from typing import Any

import pytest
from hostile_logs import COLLECTORS
from mps_build.common import strict_yaml
from mps_build.host.macos.known_tool_errors import BY_ID
from mps_build.host.triage import Explained, WrittenBy, explain, judge, render, render_device_text
from mps_build.host.triage.device_texts import memory_advice
from mps_build.host.triage.rules import Catalogue, Neighbour, load_catalogue, neighbours
from pydantic import ValidationError
from rows import for_each

RECORDED = Path(__file__).parents[2] / "recorded"
POINTS: list[dict[str, Any]] = strict_yaml.unchecked((RECORDED / "triage_points.yaml").read_text("utf-8"))
THREADS: list[dict[str, Any]] = strict_yaml.unchecked((RECORDED / "triage_threads.yaml").read_text("utf-8"))
REPORTS: list[dict[str, Any]] = strict_yaml.unchecked((RECORDED / "specimens" / "reports.yaml").read_text("utf-8"))
XCODE: list[dict[str, Any]] = strict_yaml.unchecked((RECORDED / "specimens" / "xcode.yaml").read_text("utf-8"))


@cache
def _judged(text: str) -> Explained:
    return judge(text, release=None, written_by=WrittenBy())


def _check(row: dict[str, Any]) -> None:
    found = _judged(row["text"])
    assert found.log.cause in (row["cause"], *row.get("also_ok", ()))
    failed = row.get("failed", True)
    assert (found.log.failed or found.device is not None) is failed
    assert (found.log.first_error is not None or found.device is not None) is failed
    assert not {found.log.cause, *found.log.also} & {*row.get("never", ())} - _effects(found.log.cause)
    assert found.log.certainty == row.get("certainty", found.log.certainty)
    if "category" in row:
        assert found.device is not None
        assert found.device.category == row["category"]
        assert row.get("says", "") in found.device.advice


def _effects(cause: str | None) -> set[str]:
    return {name for row in load_catalogue().causes if row.id == cause for name in row.explains}


@for_each(POINTS, name=lambda row: f"{row['point']}: {row['what']}")
def test_a_class_is_distinguished_from_its_neighbours(row: dict[str, Any]) -> None:
    _check(row)


@for_each(THREADS, name=lambda row: str(row["what"]))
def test_a_log_from_a_public_thread_has_its_right_cause(row: dict[str, Any]) -> None:
    _check(row)


@for_each(REPORTS, name=lambda row: str(row["id"]))
def test_a_users_report_has_its_right_cause(row: dict[str, Any]) -> None:
    _check(row)


@cache
def _logs_of_causes() -> dict[str, str]:
    """Return a recorded log of each cause that has one."""
    logs: dict[str, str] = {}
    for name in ("specimens/build_logs", "triage_variants", "triage_collected", "triage_points", "triage_threads"):
        for row in strict_yaml.unchecked((RECORDED / f"{name}.yaml").read_text("utf-8")):
            if row["cause"]:
                logs.setdefault(row["cause"], str(row["text"]))
    return logs


@for_each(neighbours(load_catalogue()).items(), name=lambda row: str(row[0]))
def test_no_cause_takes_a_log_of_its_nearest_neighbours(cause: str, near: tuple[Neighbour, ...]) -> None:
    for each in near:
        if log := _logs_of_causes().get(each.cause):
            assert explain(log).cause != cause, f"a log of {each.cause}"


def test_each_cause_has_a_neighbour_with_a_log() -> None:
    near = neighbours(load_catalogue())
    requested = [cause for cause, others in near.items() if any(each.cause in _logs_of_causes() for each in others)]

    assert requested == list(near)
    assert {each.cause for each in near["N111"]} & {"N43"}
    assert {each.cause for each in near["N112"]} & {"N37"}


@for_each(POINTS[::3], name=lambda row: f"{row['point']}: {row['what']}")
def test_the_dress_of_a_collector_changes_no_cause(row: dict[str, Any]) -> None:
    for dress in list(COLLECTORS)[::9]:
        assert explain(COLLECTORS[dress](row["text"])).cause == row["cause"], dress


def test_every_class_has_three_logs_and_a_neighbour() -> None:
    classes = {row["point"] for row in POINTS}

    for point in classes - {"doctor", "memory", "probable"}:
        logs = [row for row in POINTS if row["point"] == point]
        assert len([row for row in logs if "neighbour" not in row["what"]]) >= 3, point
        assert [row for row in logs if "neighbour" in row["what"]], point


# Words of tools that stop nothing, or of which only the tool's caller knows whether they do.
HARMLESS = {"no_platform_in_clt", "no_receipt", "metal_download_stalled", "xcode_select_invalid_argument"}


@for_each([row for row in XCODE if (row.get("fact") or {}).get("error")], name=lambda row: str(row["id"]))
def test_triage_knows_what_doctor_knows(row: dict[str, Any]) -> None:
    error = BY_ID[row["fact"]["error"]]
    text = f"{row.get('stdout') or ''}\n{row.get('stderr') or ''}"

    found = explain(text, exit=row["exit"])

    if error.fatal and row["exit"] != 0 and error.id not in HARMLESS and "status: uninstalled" not in text.lower():
        assert found.cause is not None
        rows = {cause.id for cause in load_catalogue().causes if error.id in cause.tool_errors}
        assert not rows or found.cause in rows | {"N1", "N20"}  # xcodebuild alone, and an SDK by its path, say more
    else:
        assert found.cause is None or row["exit"] != 0


@pytest.mark.parametrize("status", [1, 70, 134])
def test_a_status_that_is_not_0_is_a_failure_whatever_the_log_says(status: int) -> None:
    assert explain("Resolved 3 packages\nSuccessfully built demo\n", exit=status).failed
    assert explain("", exit=status).failed
    assert not explain("Successfully built demo\n", exit=0).failed


@pytest.mark.parametrize("line", ["error: it is over", "× it is over", "ERROR it is over", "✗ over", "Error: over"])
def test_no_failure_is_never_said_after_a_line_of_alarm(line: str) -> None:
    text = f"collecting things\n  {line}\nbye\n"

    assert explain(text).failed
    assert "no failure found" not in "\n".join(render(explain(text)))
    assert not explain(f"{text}Successfully installed demo-1.0\n").failed


def test_what_is_only_likely_is_said_to_be_with_its_runner_up() -> None:
    found = explain(_text("pip finds no torch at all"))

    printed = "\n".join(render(found))
    assert printed.startswith("probably cause N55")
    assert "or:   N120: This Python is for Intel" in printed
    assert found.document()["certainty"] == "probable"
    assert found.document()["runner_up"] == {"cause": "N120", "title": "This Python is for Intel (x86_64)"}


def test_a_sure_cause_has_no_runner_up_and_no_cause_has_no_certainty() -> None:
    sure = explain(_text("at import, in a flat namespace"))
    none = explain(_text("known cause: words that nobody knows"))

    assert (sure.certainty, sure.runner_up) == ("certain", None)
    assert (none.cause, none.certainty, none.runner_up) == (None, None, None)
    assert not render(sure)[0].startswith("probably")


def test_a_macro_cannot_split_the_pattern_around_it() -> None:
    found = explain("MPSNDArrayIdentity.mm:795: failed assertion `New volume should match'\nzsh: abort\n")

    assert found.cause is None
    with pytest.raises(ValidationError, match=r"put the alternatives into a group.*split"):
        Catalogue.model_validate(
            {"schema_version": 1, "macros": {"split": "a|b"}, "blockers": (), "notes": (), "causes": ()}
        )


def test_two_causes_in_one_log_are_reported_as_such() -> None:
    found = explain(_text("a header that is gone") + "ld: library not found for -lomp\n")

    assert found.cause == "N31"
    assert found.certainty == "probable"
    assert found.runner_up is not None
    assert found.runner_up.cause == "N42"


def test_a_cause_of_programs_stands_for_a_process_and_one_of_builds_does_not() -> None:
    ended = WrittenBy(exit=1)

    assert judge(_text("at import, in a flat namespace"), release=None, written_by=ended).log.cause == "N111"
    assert judge("OSError: [Errno 28] No space left on device\n", release=None, written_by=ended).log.cause is None


def test_the_advice_on_memory_is_that_of_its_numbers() -> None:
    room = {"allocated": "1.00 GB", "other": "1.00 GB", "max_allowed": "9.00 GB", "tried": "1.00 MB"}

    assert "there is room" in str(memory_advice(room))
    assert "outside of tensors" in str(memory_advice({**room, "other": "8.90 GB", "tried": "1.00 GB"}))
    assert "tensors hold 8.50 GB" in str(memory_advice({**room, "allocated": "8.50 GB"}))
    assert memory_advice({"tried": "9.00 GB"}) is None
    assert memory_advice({**room, "max_allowed": "unlimited"}) is None


def test_a_process_that_only_failed_on_the_device_has_no_word_of_an_unknown_cause(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    from mps_build.cli import main

    log = tmp_path / "a.log"
    log.write_text(_text("memory outside of tensors"), "utf-8")

    assert main("triage", [str(log)]) == 0

    printed = capsys.readouterr().out
    assert "no known cause" not in printed
    assert "device text: out_of_memory" in printed
    assert "first error: line 1" in printed
    assert render_device_text(_judged(log.read_text("utf-8")).device or pytest.fail("no device"))[-1] in printed


def _text(what: str) -> str:
    return next(str(row["text"]) for row in POINTS if what in row["what"])
