"""Known issues by value, types that a kernel's own code knows, and the rules that inject faults."""

from __future__ import annotations

import random
from pathlib import Path

import pytest
from mps_build.kernels.execution import verify_all
from mps_build.kernels.judge import known
from packaging.specifiers import SpecifierSet
from rows import for_each
from shared import kernel_faults

ROOT = Path(__file__).parents[3]


ROW = known.KnownIssue(
    id="x",
    link="https://x",
    title="t",
    torch=SpecifierSet(">=2.10,<2.14"),
    kernels=("zeta_*",),
    outcomes=("wrong",),
    where="torch.isnan(x)",
    why="w",
)


@pytest.mark.parametrize("row", known.load_known(), ids=lambda row: str(row.id))
def test_a_wrong_value_is_only_known_where_its_row_says_so(row: known.KnownIssue) -> None:
    assert row.where or "wrong" not in row.outcomes or row.is_race
    if row.where:
        compile(row.where, row.id, "eval")
        assert known.explanation_rows()[f"known:{row.id}"]["where"] == row.where
    if row.link.startswith("docs/"):
        page, _, anchor = row.link.partition("#")
        assert f'id="{anchor}"' in (ROOT / page).read_text(encoding="utf-8")


@for_each((row for row in known.load_known() if row.is_of(known.NEWEST)), name=lambda row: str(row.id))
def test_each_row_of_the_newest_release_has_the_call_that_reaches_it(row: known.KnownIssue) -> None:
    compile(row.call, row.id, "eval")
    assert "torch.tensor" in row.call or "torch.ones" in row.call or "torch.arange" in row.call


def test_what_the_judge_did_not_explain_is_a_finding() -> None:
    assert ROW.covers("zeta_dense_float_float", "wrong", "2.13.0", ("x",))
    assert not ROW.covers("zeta_dense_float_float", "wrong", "2.13.0", ())
    assert not ROW.covers("zeta_dense_float_float", "wrong", "2.13.0", ("another",))
    assert not ROW.covers("zeta_dense_float_float", "wrong", "2.14.0", ("x",))


@pytest.mark.parametrize(
    ("explained", "has_fault", "outcome"),
    [
        (["maximum-drops-nan"], False, "known"),
        (["maximum-drops-nan"], True, "known"),
        ([], False, "wrong"),
        ([], True, "wrong"),
        (["maximum-drops-nan", "hypot-overflow"], False, "wrong"),
    ],
)
def test_a_kernel_is_known_when_its_release_has_all_that_explains_it(
    explained: list[str], has_fault: bool, outcome: str
) -> None:
    row = verify_all.KernelRow(
        name="maximum_dense_float_float", library="metal_basic", body="", outcome="wrong", family="", operator="",
        reason="r", is_compiled=True, verdict={"explained": explained},
    )  # fmt: skip

    (resolved,) = verify_all._resolved([row], "2.11.0", has_fault=has_fault)

    assert resolved.outcome == outcome


_LINES = {
    "operation": "  %1 = fadd float %0, %0",
    "constant": "  %1 = add i32 %0, 31",
    "index": "  %1 = getelementptr inbounds [32 x i32], ptr %0, i64 0, i64 4",
    "stride": "  %1 = mul i32 %0, %0",
    "comparison": "  %1 = icmp ult i32 %0, %0",
    "barrier": "  call void @air.wg.barrier(i32 2, i32 1)",
    "width": "  %1 = zext i32 %0 to i64",
}


@pytest.mark.parametrize("kind", _LINES)
def test_each_rule_changes_its_one_line_inside_a_function(kind: str) -> None:
    text = f"{_LINES[kind]}\ndefine void @k(i32 %0) {{\n{_LINES[kind]}\n  ret void\n}}\n"

    faults = [each for each in kernel_faults.faults_of(text) if each.kind == kind]

    assert [each.line for each in faults] == [2]
    before, after = text.splitlines(), kernel_faults.inject(text, faults[0])
    assert _LINES[kind] in after
    assert after.splitlines()[:2] == before[:2]
    assert after.splitlines()[-2:] == before[-2:]
    assert after != text


def test_a_struct_of_one_field_has_no_other_index() -> None:
    line = "  %1 = getelementptr inbounds %struct.array, ptr %0, i64 0, i32 {}"
    faults = [
        [each.kind for each in kernel_faults.faults_of(f"define void @k() {{\n{line.format(index)}\n}}\n")]
        for index in (0, 1)
    ]

    assert faults == [[], ["index"]]


def test_a_seed_draws_the_same_fault() -> None:
    text = "define void @k(i32 %0) {\n" + "\n".join(_LINES.values()) + "\n}\n"

    drawn = [kernel_faults.draw(text, random.Random(5)) for _ in range(2)]

    assert drawn[0] == drawn[1]
    faults = [kernel_faults.draw(text, random.Random(seed)) for seed in range(60)]
    assert {fault.kind for fault in faults if fault} == set(_LINES)


def test_an_issue_of_another_release_explains_nothing() -> None:
    ours = known.explanations_of("expm1_dense_float2_float2", "2.15.0")

    assert "complex-expm1" in ours
    assert "expm1-digits" not in ours  # it ended with 2.15: beside the first it would leave the values unexplained
    assert "expm1-digits" in known.explanations_of("expm1_dense_float2_float2", "2.14.0")
    assert known.explanations_of("expm1_dense_float2_float2", None) == ()


def test_a_race_of_another_release_explains_nothing() -> None:
    assert known.races_of("orgqr_float", "2.10.0") == ("orgqr-race",)
    assert known.races_of("orgqr_float", "2.15.0") == ("orgqr-barrier", "orgqr-one-reflection")
    assert known.races_of("orgqr_float", None) == ()
    assert known.has_any_value(["orgqr-race"])
    assert not known.has_any_value(["orgqr-barrier", "orgqr-one-reflection"]), "its values are judged where it says"


def test_known_issues_hold_for_their_releases_and_outcomes() -> None:
    for each in known.load_known():
        assert each.link.startswith(("https://", "docs/"))
        assert each.why
    row = known.KnownIssue(
        id="x",
        link="https://x",
        title="t",
        torch=SpecifierSet("==2.15.*"),
        kernels=("zeta_*",),
        outcomes=("wrong",),
        where="",
        why="w",
    )
    assert row.covers("zeta_dense_float_float", "wrong", "2.15.0")
    assert not row.covers("zeta_dense_float_float", "wrong", "2.14.1")
    assert not row.covers("zeta_dense_float_float", "out_of_bounds", "2.15.0")
    assert not row.covers("zeta_dense_float_float", "wrong", None)
