"""Which operators MPS runs: the dispatcher's order, the readers of sources, headers and verdicts, and real torches.

`tests/recorded/op_coverage` holds what was read of the real 1.13.1 and 2.6.0 trees and of the official 2.6.0 wheel.
"""

from __future__ import annotations

from dataclasses import replace

from mps_build.inspection.coverage.model import ByHand, Facts, from_document
from mps_build.inspection.coverage.rules import classify, compare, compare_kernels, count, gaps
from small_records import facts, recorded, statuses


def test_the_order_is_the_dispatchers_own_kernel_then_composites_then_the_fallback() -> None:
    found = classify(
        facts(
            MPS="add.out both",
            CPU="add.out svd both single",
            CUDA="svd",
            CompositeExplicitAutograd="zeros both",
            CompositeImplicitAutograd="dropout zeros",
        )
    )

    assert statuses(found) == {
        "add.out": "kernel",
        "both": "kernel",
        "dropout": "composite_implicit",
        "single": "falls_back_on_demand",
        "svd": "falls_back_on_demand",
        "zeros": "composite_explicit",
    }
    assert [row.name for row in gaps(found)] == ["svd"]


def test_a_generated_composite_is_worth_what_the_operator_it_calls_is_worth() -> None:
    said = Facts(
        label="a",
        kind="source",
        version="9.9",
        registered={
            "MPS": frozenset({"abs.out"}),
            "CPU": frozenset({"erfc.out", "abs.out"}),
            "CompositeExplicitAutogradNonFunctional": frozenset({"abs", "erfc", "round_trip"}),
            "CompositeExplicitAutograd": frozenset({"erfc_copy.out", "other"}),
        },
        through={
            "abs": "abs.out",
            "erfc": "erfc.out",
            "erfc_copy.out": "erfc",
            "round_trip": "other",
            "other": "round_trip",
        },
    )
    rows = {row.name: row for row in classify(said)}

    assert (rows["abs"].status, rows["abs"].through) == ("composite_explicit", "abs.out")
    assert rows["erfc"].status == rows["erfc_copy.out"].status == "falls_back_on_demand"
    assert rows["round_trip"].status == "composite_explicit"  # a circle ends, and says no more than it knows


def test_what_is_registered_by_hand_goes_before_what_torchgen_wrote() -> None:
    said = Facts(
        label="a",
        kind="source",
        version="9.9",
        registered={"MPS": frozenset({"sgn.out"}), "CPU": frozenset({"sgn.out", "svd", "conv", "mine"})},
        by_hand=(
            ByHand(operator="sgn.out", falls_back=True, where="x:1"),
            ByHand(operator="svd", falls_back=True, where="x:2"),
            ByHand(operator="conv", falls_back=False, refuses=True, where="x:3"),
            ByHand(operator="mine", falls_back=False, where="x:4"),
            ByHand(operator="coalesce", falls_back=False, where="x:5", key="SparseMPS"),
        ),
    )

    assert statuses(classify(said)) == {
        "sgn.out": "falls_back_always",
        "svd": "falls_back_always",
        "conv": "refused",
        "mine": "kernel",
        "coalesce": "elsewhere",
    }


def test_1_13_1_against_2_6_0_every_difference_has_a_reason() -> None:
    old, new = recorded("v1.13.1-source"), recorded("v2.6.0-source")
    before, after = count(classify(old)), count(classify(new))
    changes = compare(old, new)

    assert (before.overloads["kernel"], after.overloads["kernel"]) == (473, 707)
    assert (before.cpu_on_mps, before.cpu, after.cpu_on_mps, after.cpu) == (473, 1112, 696, 1053)
    assert (before.overloads["falls_back_always"], after.overloads["falls_back_always"]) == (22, 7)
    assert [change.name for change in changes if not change.reason] == []
    moved = {change.name: (change.before, change.after) for change in changes}
    assert moved["nonzero"] == ("falls_back_always", "kernel")
    assert moved["cumsum.out"] == ("falls_back_on_demand", "kernel")
    assert moved["_fused_adam_"] == ("elsewhere", "kernel")
    assert moved["col2im"] == ("falls_back_on_demand", "falls_back_always")
    assert "linalg_svd" not in moved  # on the CPU then and now
    reasons = {change.name: change.reason for change in changes}
    assert reasons["cumsum.out"] == "named for MPS in native_functions.yaml"
    assert reasons["cumsum"] == "its out= form has a kernel now"
    assert reasons["col2im"] == "registered by hand (aten/src/ATen/mps/MPSFallback.mm:94)"
    assert reasons["_foreach_sin.out"] == "follows _foreach_sin, which it calls"


def test_the_source_of_2_6_0_and_its_official_wheel_differ_in_one_operator_only() -> None:
    source, wheel = recorded("v2.6.0-source"), recorded("v2.6.0-wheel")
    changes = compare(source, wheel)

    assert [(change.name, change.before, change.after) for change in changes] == [
        ("_slow_conv2d_forward", "refused", "kernel")
    ]
    assert changes[0].reason == "compiled code does not show that a kernel by hand only refuses: the source does"
    assert source.registered["MPS"] == wheel.registered["MPS"]
    assert {(each.operator, each.falls_back) for each in source.by_hand} == {
        (each.operator, each.falls_back) for each in wheel.by_hand
    }
    assert wheel.checks == ()  # headers, torchgen and machine code agree
    assert {section: len(names) for section, names in wheel.kernels.items()} == {
        "metal_basic": 159,
        "metal_bfloat": 196,
    }


def test_a_kernel_that_a_wheel_lost_is_found_and_explained() -> None:
    source, wheel = recorded("v2.6.0-source"), recorded("v2.6.0-wheel")
    mps = wheel.registered["MPS"] - {"cumsum.out", "cumsum", "cumsum_"}
    changes = compare(source, replace(wheel, registered={**wheel.registered, "MPS": mps}))

    assert {change.name: change.after for change in changes if change.name.startswith("cumsum")} == {
        "cumsum": "falls_back_on_demand",
        "cumsum.out": "falls_back_on_demand",
        "cumsum_": "falls_back_on_demand",
    }


def test_metal_kernels_of_two_wheels_are_compared_by_name() -> None:
    wheel = recorded("v2.6.0-wheel")
    other = from_document(wheel.document() | {"kernels": {"metal_basic": ["new_kernel"]}}, named="x")
    basic, bfloat = compare_kernels(wheel, other)

    assert (basic.section, basic.left, basic.right, basic.only_right) == ("metal_basic", 159, 1, ("new_kernel",))
    assert (bfloat.left, bfloat.right) == (196, 0)
    assert compare_kernels(recorded("v2.6.0-source"), wheel) == ()
