"""--large: what a rule of a family says of the host's guards, and what the wheel's code says, together."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from dataclasses import replace

import pytest

pytest.importorskip("llvmlite")

from mps_build.kernels.execution import large_host
from mps_build.kernels.families.shared.contracts import Kernel
from mps_build.kernels.families.shared.large import Ask, Guard, Rule
from mps_build.kernels.read.host_code import HostCode
from small_kernels import RULE, UNGUARDED, changed, contract

pytestmark = pytest.mark.skipif(not sys.platform.startswith("linux"), reason="kernels are executed on Linux")


@pytest.fixture(autouse=True)
def rule(monkeypatch: pytest.MonkeyPatch) -> None:
    """What a test puts in the place of `rule_of` is taken back."""
    monkeypatch.setattr(large_host, "rule_of", lambda *_: RULE)


def tensor(size: int, shape: tuple[int, ...], element: int = 4, name: str = "input") -> large_host.Tensor:
    return large_host.Tensor(name=name, size=size, shape=shape, element=element)


@pytest.mark.parametrize(
    ("quantity", "small", "large"),
    [
        ("bytes", tensor(2**31 - 1, (2**29,)), tensor(2**31, (2**29,))),
        ("elements", tensor(4 * (2**31 - 1), (2**31 - 1,)), tensor(4 * 2**31, (2**16, 2**15))),
        ("dimension", tensor(4 * 2**33, (2**31 - 1, 4)), tensor(2**31, (2**31, 1), element=1)),
    ],
)
def test_each_quantity_lets_pass_what_it_should(
    quantity: str, small: large_host.Tensor, large: large_host.Tensor
) -> None:
    guard = Guard(name="asks", quantity=quantity, most=2**31 - 1, source="")  # type: ignore[arg-type]
    bound = large_host.Bound(guard=guard, ask=Ask(guard="canUse32BitIndexMath", then="other", of=("input",)))

    assert bound.passes([small, replace(large, name="other")])
    assert not bound.passes([small, large])


def host(calls: dict[str, dict[str, int]], stated: Rule, texts: Sequence[str] = ()) -> large_host.Host:
    kernel = Kernel(name="k", metadata=None, contract=contract())  # type: ignore[arg-type]
    vars(large_host)["rule_of"] = lambda *_: stated  # put back by the fixture `rule`
    return large_host.host_of(kernel, HostCode(calls=calls, texts=frozenset(texts)))


@pytest.mark.parametrize(("number", "most"), [(0, 2**31 - 1), (2**32, 2**32), (2**29, 2**29)])
def test_the_number_that_the_wheel_gives_a_guard_is_the_limit(number: int, most: int) -> None:
    asks = (Ask(guard="canUse32BitIndexMath", then="refuses"),)

    found = host({"launch": {"canUse32BitIndexMath": number}}, changed(asks=asks))

    assert [each.guard.most for each in found.bounds] == [most]


def test_on_a_way_any_function_may_ask_and_of_two_ways_both_must() -> None:
    calls = {"outer": {"with_32bit_indexing": 0}, "inner": {}}

    assert host(calls, changed(host=("outer > inner",))).bounds
    assert not host(calls, changed(host=("outer", "inner"))).bounds


def test_a_kernel_of_64_bits_beside_it_leaves_it_open_unless_a_guard_is_stated() -> None:
    kernel = Kernel(name="copy_u32", metadata=None, contract=contract())  # type: ignore[arg-type]
    for asks, is_open in (((), True), (RULE.asks, False)):
        vars(large_host)["rule_of"] = lambda *_, asks=asks: changed(asks=asks)
        assert bool(large_host.host_of(kernel, UNGUARDED, {"copy_u64"}).unknown) is is_open
        assert not large_host.host_of(kernel, UNGUARDED, {"copy_u16"}).unknown


def test_a_guard_of_a_caller_that_no_rule_states_leaves_it_open() -> None:
    kernel = Kernel(name="k", metadata=None, contract=contract())  # type: ignore[arg-type]
    code = HostCode(calls={"launch": {}, "outer": {}}, callers={"launch": frozenset({"canUse32BitIndexMath"})})
    for asks, is_open in (((), True), ((Ask(guard="canUse32BitIndexMath", then="other"),), False)):
        vars(large_host)["rule_of"] = lambda *_, asks=asks: changed(asks=asks)
        assert bool(large_host.host_of(kernel, code).unknown) is is_open


def test_a_refusal_counts_if_the_wheel_holds_its_text() -> None:
    rule = changed(asks=(Ask(message="too large", quantity="elements", most=10, then="refuses"),))

    assert host({"launch": {}}, rule, ["too large"]).bounds
    assert not host({"launch": {}}, rule).bounds


def test_a_meaning_of_a_guard_is_chosen_by_its_arguments() -> None:
    asks = (Ask(guard="isTooLargeForMPSGraph", then="other"),)
    rule = changed(asks=asks)

    old = host({"launch": {"isTooLargeForMPSGraph ERKNS_6TensorEb": 1}}, rule).bounds
    new = host({"launch": {"isTooLargeForMPSGraph ERKNS_6TensorEbb": 1}}, rule).bounds

    assert [each.guard.quantity for each in (*old, *new)] == ["dimension", "elements"]
    assert [each.guard.most for each in (*old, *new)] == [2**31 - 1, 2**31 - 1]
