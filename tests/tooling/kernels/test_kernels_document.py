"""What a run says: verdict and counts, findings and known issues once each, with inputs and links."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from mps_build.commands import verify_kernels
from mps_build.common.console import Console
from mps_build.common.reporting import Result
from mps_build.kernels.execution.verify_all import KernelRow
from mps_build.kernels.report import document

NAME = "remainder_dense_float_float"


LINK = "docs/inspect/kernel_findings.md#remainder"


def known(library: str, *, is_twin: bool = False) -> KernelRow:
    return KernelRow(
        name=NAME,
        library=library,
        body="b",
        outcome="known",
        family="binary_dense",
        operator="remainder",
        reason=f"remainder-formula ({LINK}): 602 of 4099 elements differ",
        verdict={
            "inputs": {"case": "4099 elements", "x": "1000.0", "y": "0.1"},
            "where": {"got": "-1.5", "want": "0.09"},
        },
        is_twin=is_twin,
        issue="remainder-formula",
        link=LINK,
    )


def passed(library: str) -> KernelRow:
    return KernelRow(
        name="exp_dense_float_float",
        library=library,
        body="c",
        outcome="passed",
        family="unary",
        operator="exp",
        reason="",
    )


def concluded(rows: list[KernelRow], page: Path) -> Result:
    options = verify_kernels.Options(
        target="torch.whl", python=None, kernel=None, op=None, quick=False, large=False, seed=0, inject=None, html=page,
        beside=(), accept=None, junit=page.with_suffix(".xml"), sarif=page.with_suffix(".sarif"),
        trust=False,
    )  # fmt: skip
    return verify_kernels._concluded(rows, [], options, Console(), name="torch.whl", version="2.15.0")


def test_known_issues_are_shown_once_each_with_their_witness(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    page = tmp_path / "page.html"
    result = concluded([known("metal_basic"), passed("metal_basic"), known("metal_40", is_twin=True)], page)

    printed = capsys.readouterr().out
    (line,) = [line for line in printed.splitlines() if NAME in line]
    assert line.split() == [NAME, "x", "1000.0,", "y", "0.1", "-1.5", "0.09", "remainder-formula"]
    assert f"remainder-formula: {LINK}\n" in printed
    assert "known_issues_only" in printed.splitlines()[-1]
    assert (result.exit_code, result.document["verdict"]) == (11, "known_issues_only")
    rows = [row for row in result.document["kernels"] if row["outcome"] == "known"]
    assert {(row["issue"], row["link"]) for row in rows} == {("remainder-formula", LINK)}
    text = page.read_text(encoding="utf-8")
    assert '<div class="verdict known"><h1>Known issues only</h1>' in text
    assert text.count(f"<code>{NAME}</code>") == 1
    assert '<td class="what">x 1000.0, y 0.1</td><td><code>-1.5</code></td><td><code>0.09</code></td>' in text


def test_each_family_says_how_many_are_known(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    concluded([known("metal_basic"), passed("metal_basic")], tmp_path / "page.html")

    family = next(line for line in capsys.readouterr().out.splitlines() if line.startswith("binary_dense"))
    assert family.split() == ["binary_dense", "1", "1", "1", "1", "1"], "the last is `known`; `wrong` is empty"


def candidate(name: str, library: str, body: str) -> KernelRow:
    rank = "none of its cases becomes large"
    return KernelRow(
        name=name,
        library=library,
        body=body,
        outcome="overflow_candidate",
        family="index",
        operator="index",
        reason=f"{rank}: 3 values of 32 bits reach an address",
        verdict={"where": {"rank": rank}},
    )


def test_candidates_and_findings_are_counted_once_whatever_libraries_hold_them(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    wrong = replace(passed("metal_40"), outcome="wrong", reason="right up to 2**31", body="d")
    rows = [candidate("index_put", "metal_basic", "a"), candidate("index_put", "metal_40", "b")]

    result = concluded([*rows, passed("metal_basic"), wrong], tmp_path / "page.html")

    said = " ".join(capsys.readouterr().out.split())
    assert "none of its cases becomes large 1 index 1" in said
    assert "1 overflow candidate, 1 wrong" in said or "1 wrong, 1 overflow candidate" in said
    assert "(0 of 2 kernels passed)" in said
    assert "wrong: exp_dense_float_float (metal_40)" in said
    assert len(result.document["kernels"]) == 4  # the document has a row for each library


def test_a_finding_names_every_library_that_holds_it(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    wrong = replace(passed("metal_basic"), outcome="wrong", reason="right up to 2**31")
    concluded([wrong, replace(wrong, library="metal_40", is_twin=True)], tmp_path / "page.html")

    assert "wrong: exp_dense_float_float (metal_basic, metal_40)\n" in capsys.readouterr().out


def _row(name: str, outcome: str, library: str = "metal_basic") -> KernelRow:
    return KernelRow(
        name=name,
        library=library,
        body="b",
        outcome=outcome,
        family="f",
        operator="o",
        reason="",
        is_compiled=outcome != "not_compiled",
    )


def test_nothing_verified_is_never_success() -> None:
    assert document.verdict_of([]) == ("not_verified", 2)
    assert document.verdict_of([_row("a", "not_bound"), _row("b", "not_compiled")]) == ("not_verified", 2)
    assert document.verdict_of([_row("a", "not_bound"), _row("b", "passed")]) == ("verified", 0)
    assert document.verdict_of([_row("a", "known"), _row("b", "passed")]) == ("known_issues_only", 11)
    assert document.verdict_of([_row("a", "misfit"), _row("b", "passed"), _row("c", "known")]) == ("misfit", 20)
    assert document.verdict_of([_row("a", "misfit"), _row("b", "wrong")]) == ("findings", 10)
    assert document.verdict_of([_row("a", "refused"), _row("b", "not_compiled")]) == ("refused", 21)
    assert document.verdict_of([_row("a", "refused"), _row("b", "passed")]) == ("verified", 0)
    assert document.verdict_of([_row("a", "known"), _row("b", "race")]) == ("findings", 10)


def test_the_document_counts_the_first_library_and_all_of_them() -> None:
    rows = [_row("a", "passed"), _row("b", "not_bound"), _row("c", "not_compiled"), _row("a", "passed", "metal_40")]

    found = document.document_of(rows, target="x", version="2.15.0", seed=0)

    assert found["coverage"] == {"kernels": 3, "compiled": 2, "bound": 1, "run": 1}
    one = {"kernels": 1, "compiled": 1, "bound": 1, "run": 1}
    assert found["libraries"]["metal_basic"] == found["coverage"]
    assert found["libraries"]["metal_40"] == {**one, "same": 0, "changed": one, "new": dict.fromkeys(one, 0)}


def test_kernels_of_another_library_are_the_same_changed_or_new() -> None:
    twin = _row("b", "passed", "metal_40")
    twin.is_twin = True
    rows = [_row("a", "passed"), _row("b", "passed"), twin, _row("a", "not_bound", "metal_40")]
    rows.append(_row("c", "passed", "metal_40"))

    found = document.document_of(rows, target="x", version="2.15.0", seed=0)["libraries"]["metal_40"]

    assert found["same"] == 1
    assert found["changed"] == {"kernels": 1, "compiled": 1, "bound": 0, "run": 0}
    assert found["new"] == {"kernels": 1, "compiled": 1, "bound": 1, "run": 1}
