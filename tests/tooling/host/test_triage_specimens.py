"""Every shared specimen of build logs, device texts and tools: right, in whatever form it comes, and cut anywhere."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from mps_build.common import strict_yaml
from mps_build.host.triage import Triage, classify_device_text, explain
from mps_build.host.triage.tools.read import read_tool_output
from packaging.version import Version
from rows import for_each

SPECIMENS = Path(__file__).parents[2] / "recorded" / "specimens"


@cache
def _all(name: str) -> dict[str, dict[str, Any]]:
    rows = strict_yaml.unchecked((SPECIMENS / f"{name}.yaml").read_text("utf-8"))
    return {row["id"]: row for row in rows}


FORMS: Mapping[str, Callable[[str], str]] = {
    "as it is": lambda text: text,
    "CRLF": lambda text: text.replace("\n", "\r\n"),
    "colour": lambda text: "\n".join(f"\x1b[1;31m{line}\x1b[0m\x1b[K" for line in text.split("\n")),
    "trailing blanks": lambda text: text.replace("\n", "  \t\n"),
    "no last newline": lambda text: text.rstrip("\n"),
    "foreign lines before": lambda text: "Fetching the tools\nwarning: a cache is cold\nwelcome\n" + text,
}
RELAYS = {
    "GitHub": "2026-10-16T09:12:24.3990503Z {}",
    "gh run view": "build\tBuild the wheel\t2026-10-16T09:12:24.3990503Z {}",
    "Jenkins": "[2026-10-16T09:12:24.399Z] {}",
    "BuildKit": "#21 5.532 {}",
    "just": "[build] {}",
    "nix": "torch> {}",
    "pip": "      {}",
    "rich": "│ {}",
}


def _reported(found: Triage, row: Mapping[str, Any]) -> None:
    assert found.cause == row["cause"] or (row["cause"] and found.cause in row.get("also_ok", ()))
    if row["first_error"] is None:
        assert found.first_error is None
    else:
        assert found.first_error is not None
        assert " ".join(row["first_error"].split()) in " ".join(found.first_error.text.split())


def _release(row: Mapping[str, Any]) -> Version | None:
    return Version(row["recipe"]) if row.get("recipe") else None


@for_each(_all("build_logs"))
def test_a_build_log_is_explained_in_every_form(name: str) -> None:
    row = _all("build_logs")[name]

    for form in FORMS.values():
        _reported(explain(form(row["text"]), release=_release(row)), row)
    _reported(explain(row["text"]), row)


@pytest.mark.parametrize("relay", RELAYS)
def test_relays_prefixes_are_seen_through(relay: str) -> None:
    for row in list(_all("build_logs").values())[:: len(RELAYS) // 2 - 1]:
        text = "\n".join(RELAYS[relay].format(line) for line in row["text"].split("\n"))
        _reported(explain(text, release=_release(row)), row)


@for_each(_all("build_logs"))
def test_a_cut_build_log_names_the_right_cause_or_none(name: str) -> None:
    _check_cuts(name, step=4)


@pytest.mark.slow
@for_each(_all("build_logs"))
def test_a_build_log_that_is_cut_after_any_line_names_the_right_cause_or_none(name: str) -> None:
    _check_cuts(name, step=1)


def _check_cuts(name: str, *, step: int) -> None:
    row = _all("build_logs")[name]
    lines = row["text"].splitlines(keepends=True)

    for end in range(0, len(lines), step):
        found = explain("".join(lines[:end]), release=_release(row))
        assert found.cause in (None, row["cause"], *row.get("also_ok", ())), f"cut after line {end}"


@for_each(_all("build_logs"))
def test_the_line_number_is_that_of_the_file(name: str) -> None:
    row = _all("build_logs")[name]
    found = explain(row["text"]).first_error

    if found is not None:
        assert found.text.strip().split()[0] in row["text"].split("\n")[found.number - 1]


@for_each(_all("mps_stderr"))
def test_a_device_text_is_classified_in_every_form_and_never_wrongly_when_cut(name: str) -> None:
    row = _all("mps_stderr")[name]
    known: dict[str, Any] = {"exit": row["exit"], "signal": row["signal"], "host": row.get("host")}
    # Only our own comparison could say more than the text.
    by_comparison = row.get("decided_by") == "comparison"
    category = "unknown" if by_comparison else row["category"]
    detail = {} if by_comparison else row.get("detail", {})

    for form in FORMS.values():
        found = classify_device_text(form(row["text"]), **known)
        assert found.category == category
        assert found.detail == detail
        # Nothing in this one text tells mlx; saying so would be a guess.
        assert found.origin == (None if name == "virtual-parallels-unrecognized-selector" else row.get("from"))
        assert not (found.origin and found.verdict == "case")
    lines = row["text"].splitlines(keepends=True)
    for end in range(len(lines)):
        assert classify_device_text("".join(lines[:end]), **known).category in (category, "unknown")


@for_each(_all("tools"))
def test_a_tools_output_is_read_in_every_form(name: str) -> None:
    row = _all("tools")[name]
    argv = row.get("argv", ())

    for form in FORMS.values():
        facts = read_tool_output(form(row["text"]), argv)
        assert facts is not None
        assert {key: facts.get(key) for key in row["fact"]} == row["fact"]
    assert read_tool_output(row["text"]) == read_tool_output(row["text"], argv)


@pytest.mark.parametrize("name", [name for name in _all("tools") if name.startswith(("ccache", "sccache", "gate"))])
def test_cut_statistics_hold_no_wrong_figure(name: str) -> None:
    row = _all("tools")[name]
    lines = row["text"].splitlines(keepends=True)

    for end in range(len(lines)):
        facts = read_tool_output("".join(lines[:end]), row.get("argv", ())) or {}
        assert all(value is None or value == row["fact"].get(key, value) for key, value in facts.items())
