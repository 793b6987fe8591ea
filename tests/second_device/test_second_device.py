"""What the CPU in the device's place cannot show, on a second device that is built here.

Built once per torch by its own C++ tools; where they are not there, each test is skipped and says which is missing.
It needs a process of its own: a device must be there before autograd's engine starts a thread for each.
"""

from __future__ import annotations

import threading
from typing import Any, Iterator

import pytest
import torch
from torch.utils._python_dispatch import TorchDispatchMode

from engine.cases import Case
from engine.compare import Mismatch
from engine.runs import Bench
from engine.states import Refused, run_case
from fresh_faults import Fault
from mechanisms import SCALED
from suite_in_process import core, core_cases
from twin import NAME, Unavailable, load

# What this small device itself cannot do; no news about the suite.
UNABLE = {
    "models-lstm-step": "the CPU's kernels have no fused cell, and autograd asks every other device for one",
    "models-gru-step": "as models-lstm-step",
    "smoke-save-and-load-both-ways": "it registers no way to load a storage",
}
# What is run here: smoke, the transformers, the models, by how their ids begin.
QUERIES = ("smoke-", "82707-", "models-")


@pytest.fixture(scope="module")
def built() -> Any:
    try:
        return load()
    except Unavailable as why:
        pytest.skip(f"no second device: {why}")


@pytest.fixture()
def controls(built: Any) -> Iterator[Any]:
    built.take_fallbacks()
    yield built
    built.lack(set())
    built.warn(False)
    built.mix(False)


@pytest.fixture(scope="module")
def cases() -> dict[str, Case]:
    return {case.id: case for _, case in core()}


def bench(around: Any = None) -> Bench:
    return Bench(torch.device(NAME), around=around)


@pytest.mark.parametrize("prefix", QUERIES)
def test_a_healthy_second_device_raises_no_alarm(prefix: str, controls: Any) -> None:
    failed = {}
    cases = [case for case in core_cases() if case.id.startswith(prefix) and case.id not in UNABLE]
    for case in cases:
        try:
            run_case(case, bench())
        except Exception as wrong:
            failed[case.id] = f"{type(wrong).__name__}: {wrong}"

    assert cases and failed == {}
    assert sum(controls.take_fallbacks().values()) > len(cases), "the device was not used"


def test_operands_on_two_devices_are_refused_and_a_device_that_takes_them_is_noticed(
    controls: Any, cases: dict[str, Case]
) -> None:
    case = cases["smoke-operands-on-two-devices-are-refused"]
    run_case(case, bench())

    controls.mix(True)
    with pytest.raises(AssertionError):
        run_case(case, bench())


def test_a_missing_operator_is_a_gap_where_that_may_be_and_a_failure_elsewhere(
    controls: Any, cases: dict[str, Case]
) -> None:
    may, must = cases["82707-t4-adamw-fused"], cases["82707-t2-every-gradient"]

    controls.lack({"aten::_fused_adamw_"})
    with pytest.raises(Refused, match="'aten::_fused_adamw_' is not currently implemented for the TWIN device"):
        run_case(may, bench())
    controls.lack({"aten::gelu_backward"})
    with pytest.raises(Mismatch, match="raised NotImplementedError"):
        run_case(must, bench())


def test_fallbacks_are_counted_by_operator_and_their_warning_is_an_error(controls: Any, cases: dict[str, Case]) -> None:
    x = torch.ones(3, 4).to(NAME)
    controls.take_fallbacks()
    x.t()[1:].unsqueeze(0).expand(2, 3, 3)
    assert controls.take_fallbacks() == {}
    torch.erf(x) + torch.erf(x)
    assert controls.take_fallbacks() == {"aten::erf": 2, "aten::add": 1}

    controls.warn(True)
    with pytest.warns(UserWarning, match="'aten::erf' is not currently supported .* will fall back to run on the CPU"):
        torch.erf(x)
    with pytest.raises(Mismatch, match="fall back to run on the CPU"):
        run_case(cases["82707-t2-every-gradient"], bench())


class Threads(TorchDispatchMode):
    """Remembers which threads dispatched an operator."""

    def __init__(self, operator: str) -> None:
        super().__init__()
        self.operator = operator
        self.seen: set[int] = set()

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        if str(func) == self.operator:
            self.seen.add(threading.get_ident())
        return func(*args, **(kwargs or {}))


def test_a_fault_reaches_backward_on_the_devices_own_thread(controls: Any, cases: dict[str, Case]) -> None:
    case = cases["82707-t2-every-gradient"]
    mode = Threads("aten.gelu_backward.default")
    run_case(case, bench(lambda: mode))
    fault = Fault("aten.gelu_backward.default", SCALED, "")

    assert mode.seen and threading.get_ident() not in mode.seen
    with pytest.raises(Mismatch):
        run_case(case, bench(fault))
    assert fault.hits > 0
