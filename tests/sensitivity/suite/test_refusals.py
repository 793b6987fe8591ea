"""A refusal inside a table stands for every answer that it would have given; a case's own mistake is none."""

from __future__ import annotations

import sys
import warnings
from typing import Any

import pytest
import torch
from torch.utils._python_dispatch import TorchDispatchMode

from engine import versions as macos
from engine.answers import attempt, says_missing
from engine.cases import Case
from engine.compare import Mismatch
from engine.runs import Bench
from engine.states import Refused, run_case


def _pair(refused: tuple[torch.dtype, ...] = ()) -> Case:
    def both(x: torch.Tensor) -> Any:
        if x.dtype in refused:
            raise RuntimeError("not here")
        return [torch.neg(x), torch.abs(x)]

    return Case(
        "pair", "scenarios", lambda x: {"pair": attempt(lambda: both(x)), "one": x + 1}, lambda d: (d.normal(3),)
    )


class _RefusesNeg(TorchDispatchMode):
    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        if func is torch.ops.aten.neg.default:
            raise RuntimeError("unsupported by this device")
        return func(*args, **(kwargs or {}))


def test_a_pair_that_the_reference_refuses_is_not_compared() -> None:
    run_case(_pair((torch.float64,)), Bench(torch.device("cpu")))


def test_a_pair_that_the_device_refuses_is_called_a_refusal() -> None:
    """Met on an NVIDIA GPU: "38 outputs, the reference has 40"."""
    with pytest.raises(Mismatch, match="raised RuntimeError: unsupported by this device"):
        run_case(_pair(), Bench(torch.device("cpu"), around=_RefusesNeg))


def _misspelt(x: torch.Tensor) -> Any:
    return x + undefined  # type: ignore[name-defined]  # noqa: F821


def test_a_name_that_a_case_does_not_define_is_a_failure_and_no_refusal() -> None:
    """Met when a table lost its import: ten cases were skipped as "the CPU raises NameError"."""
    bench = Bench(torch.device("cpu"))
    entry = Case("entry", "scenarios", lambda x: attempt(lambda: _misspelt(x)), lambda d: (d.normal(3),))
    for case in (Case("case", "scenarios", _misspelt, lambda d: (d.normal(3),)), entry):
        with pytest.raises(NameError):
            run_case(case, bench)


@pytest.mark.skipif(sys.version_info < (3, 10), reason="an AttributeError tells of what since Python 3.10")
def test_what_the_suite_itself_lacks_is_no_refusal() -> None:
    """Met when a case had its run to wait and a run could not: skipped on every device, as what this torch lacks."""

    def act(run: Any, x: torch.Tensor) -> Any:
        return run.no_such_thing(x)

    with pytest.raises(AttributeError, match="no_such_thing"):
        run_case(Case("lacking", "smoke", act, lambda d: (d.normal(3),)), Bench(torch.device("cpu")))


def test_what_torch_lacks_is_a_refusal() -> None:
    case = Case("lacking", "smoke", lambda x: torch.no_such_thing(x), lambda d: (d.normal(3),))

    with pytest.raises(Refused, match="no_such_thing"):
        run_case(case, Bench(torch.device("cpu")))


@pytest.mark.parametrize(
    "text",
    [
        "linalg_inv: not supported for complex types yet!",
        "linalg.cholesky: MPS supports float32 and complex64, but got Half",
        "cholesky_inverse: MPS only supports float type!",
        "geqrf: MPS currently supports float32 only",
        "index_reduce for MPS does not support torch.cfloat dtype",
        "frac_out_mps is only implemented for floating types",
    ],
)
def test_a_gap_as_the_mps_of_2_15_words_it_is_a_gap(text: str) -> None:
    """The texts are in libtorch_cpu.dylib of the official wheel; four of them had been taken for wrong answers."""
    assert says_missing(RuntimeError(text))


@pytest.mark.parametrize("text", ["shape '[3]' is invalid for input of size 4", "index 9 is out of bounds", "nan"])
def test_a_wrong_refusal_is_no_gap(text: str) -> None:
    assert not says_missing(RuntimeError(text))


class _LacksNeg(TorchDispatchMode):
    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        if func is torch.ops.aten.neg.default:
            raise NotImplementedError("neg is not implemented here")
        return func(*args, **(kwargs or {}))


def test_in_the_rehearsal_a_gap_that_the_cpu_does_not_have_is_a_fault() -> None:
    """A fault that words its refusal as a gap was skipped where all was refused."""
    table = Case("neg", "scenarios", lambda x: {"neg": attempt(lambda: torch.neg(x))}, lambda d: (d.normal(3),))

    with pytest.raises(Mismatch, match="raised NotImplementedError"):
        run_case(table, Bench(torch.device("cpu"), around=_LacksNeg))


def test_a_table_that_the_cpu_refuses_whole_is_skipped_and_not_passed() -> None:
    """Met in 21 cases of promotion and indexing: they had passed, and nothing was compared."""
    table = Case("gcd", "scenarios", lambda x: {"pair": attempt(lambda: torch.gcd(x, x))}, lambda d: (d.normal(3),))

    with pytest.raises(Refused, match=r"not on the CPU: .*gcd"):
        run_case(table, Bench(torch.device("cpu")))


class _AddsMore(TorchDispatchMode):
    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        found = func(*args, **(kwargs or {}))
        return found.mul_(3) if func is torch.ops.aten.add_.Tensor else found


def test_the_operands_of_a_table_that_is_refused_whole_are_not_compared() -> None:
    """Met on a device without rrelu_with_noise: it had not written its noise, which was called wrong."""

    def refused(x: torch.Tensor) -> Any:
        x.add_(0)
        raise RuntimeError("not here")

    table = Case("add", "scenarios", lambda x: {"sum": attempt(lambda: refused(x))}, lambda d: (d.normal(3),))

    with pytest.raises(Refused, match="not on the CPU: not here"):
        run_case(table, Bench(torch.device("cpu"), around=_AddsMore))


@pytest.fixture
def on_macos_14(monkeypatch: pytest.MonkeyPatch) -> Any:
    """The torch of this process says that it runs on macOS 14.4."""
    monkeypatch.setattr(macos, "_needs_what_is_here", lambda: macos.needs_one_of([(13, 0), (13, 2), (14, 0), (14, 4)]))


@pytest.mark.parametrize(
    ("text", "is_a_gap"),
    [
        ("torch.int32 is only supported on MacOS15+", True),
        ("torch.int32 is only supported on MacOS14+", False),
        ("MPS complex types are only supported on MacOS 14.0 or newer.", False),
        ("MPS does not support cumsum with int64. Support has been added in macOS 13.2", False),
        ("not supported for the provided input on MacOS14. Falling back on CPU.", True),
        ("not supported before macOS 14.40 or newer", True),
    ],
)
def test_a_refusal_that_asks_for_the_macos_that_is_here_is_no_gap(on_macos_14: None, text: str, is_a_gap: bool) -> None:
    assert says_missing(RuntimeError(text)) is is_a_gap


@pytest.mark.parametrize(("version", "raises"), [("14.0", True), ("15.0", False)])
def test_a_warning_that_asks_for_the_macos_that_is_here_is_an_error(
    on_macos_14: None, version: str, raises: bool
) -> None:
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        macos.refuse_such_warnings()
        text = f"MPS: nonzero op is supported natively starting from macOS {version}. Falling back on CPU."
        if raises:
            with pytest.raises(UserWarning):
                warnings.warn(text, stacklevel=1)
        else:
            warnings.warn(text, stacklevel=1)
            assert len(said) == 1


def _checked_neg(bench: Any) -> None:
    with bench.device_run() as run:
        torch.neg(torch.ones(2, dtype=torch.float16, device=run.device))


def test_what_the_cpu_of_this_torch_lacks_is_no_fault_of_a_check() -> None:
    """torch 1.12's CPU convolves no halves: 12 cases ended verify_mps as a fault of the suite itself."""

    def lacks(bench: Any) -> None:
        _checked_neg(bench)
        raise RuntimeError("\"slow_conv2d_cpu\" not implemented for 'Half'")

    with pytest.raises(Refused, match="this torch's CPU raises RuntimeError"):
        run_case(Case("neg", "scenarios", lacks, check=True), Bench(torch.device("cpu")))
    with pytest.raises(RuntimeError, match="unsupported by this device"):
        run_case(Case("neg", "scenarios", _checked_neg, check=True), Bench(torch.device("cpu"), around=_RefusesNeg))
