"""What PyTorch leaves to a device must not be asked: a device that chooses otherwise is right."""

from __future__ import annotations

from typing import Any

import pytest
import torch

from device_suite.conditions.asking import ask_rows
from device_suite.conditions.listed import rows_of
from device_suite.overloads.asking import ask_calls, stored_calls
from device_suite.overloads.described import values
from device_suite.runs import Bench
from device_suite.states import Refused
from free_choice import ChoosesOtherwise
from operators import tables
from overload_calls import reads_beyond

SPECS = {name: spec for table in tables() for name, spec in table.operators.items()}
# Families that an NVIDIA GPU answered otherwise, and was right: what they asked had no one answer.
FREE = (
    *("scatter", "scatter_inplace", "scatter_add_old_inplace", "index_copy", "index_copy_inplace", "index_put_rows"),
    *("put", "sort", "argsort", "topk_many", "kthvalue", "median", "interpolate_nearest1d", "upsample_nearest1d"),
)


@pytest.mark.parametrize("name", FREE)
def test_no_row_changes_where_a_device_chooses_otherwise(name: str) -> None:
    bench = Bench(torch.device("cpu"), around=ChoosesOtherwise)

    ask_rows(SPECS[name], rows_of(SPECS[name]), bench)


def test_writes_to_one_place_happen_in_the_opposite_order() -> None:
    index, source = torch.tensor([1, 1]), torch.tensor([5.0, 7.0])
    with ChoosesOtherwise():
        answers = [
            torch.zeros(3).scatter(0, index, source),
            torch.zeros(3).index_copy(0, index, source),
            torch.zeros(3).index_put((index,), source),
            torch.zeros(3).put(index, source),
        ]
        summed = torch.zeros(3).index_put((index,), source, accumulate=True)

    assert [one[1].item() for one in answers] == [5.0] * 4
    assert summed[1].item() == 12.0


def test_ties_are_taken_from_the_other_end_and_stable_sorts_stay() -> None:
    x = torch.tensor([2.0, 1.0, 2.0, 1.0])
    with ChoosesOtherwise():
        order, stable = x.sort()[1].tolist(), x.sort(stable=True)[1].tolist()
        best, middle = x.topk(1)[1].tolist(), x.kthvalue(1)[1].item()

    assert (order, stable) == ([3, 1, 2, 0], [1, 3, 0, 2])
    assert best == [2]
    assert middle != x.kthvalue(1)[1].item()


@pytest.mark.parametrize("number", [float("nan"), float("inf"), 3e9, -1.0])
def test_a_number_that_does_not_fit_becomes_another(number: float) -> None:
    with ChoosesOtherwise():
        odd = torch.tensor([number, 2.0]).to(torch.uint8).tolist()

    assert odd == [77, 2]


def test_the_calls_of_an_overload_notice_a_fault_in_it() -> None:
    name = next(one for one in stored_calls() if one.startswith("_foreach_add."))
    func = getattr(torch.ops.aten._foreach_add, name.split(".")[1])
    ask_calls(name, stored_calls()[name], Bench(torch.device("cpu")))

    class Wrong(torch.utils._python_dispatch.TorchDispatchMode):
        def __torch_dispatch__(self, called: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
            answer = called(*args, **(kwargs or {}))
            return [one + 1 for one in answer] if called is func else answer

    with pytest.raises(AssertionError, match="call 0"):
        ask_calls(name, stored_calls()[name], Bench(torch.device("cpu"), around=Wrong))


def test_an_overload_that_this_torch_has_not_is_refused() -> None:
    with pytest.raises(Refused, match="no such"):
        ask_calls("no such.default", [], Bench(torch.device("cpu")))


@pytest.mark.parametrize("dtype", [torch.float16, torch.int8, torch.uint8, torch.bool, torch.complex64])
def test_described_values_lie_between_their_ends(dtype: torch.dtype) -> None:
    drawn = values(dtype, (3, 50), -2, 3, 1)
    wide = torch.view_as_real(drawn) if dtype.is_complex else drawn

    assert drawn.dtype == dtype
    assert float(wide.float().min()) >= -2
    assert float(wide.float().max()) <= 3
    assert wide.unique().numel() > 1


def test_the_opposite_vectors_are_as_right() -> None:
    x = torch.tensor([[2.0, 1.0], [1.0, 3.0]])
    values, vectors = torch.linalg.eigh(x)
    with ChoosesOtherwise():
        other_values, other_vectors = torch.linalg.eigh(x)
        q, r = torch.linalg.qr(x)

    assert torch.equal(other_values, values)
    assert torch.equal(other_vectors, -vectors)
    assert torch.allclose(q @ r, x)
    assert not torch.equal(q, torch.linalg.qr(x)[0])


def test_a_call_whose_answer_hangs_on_what_lies_behind_an_operand_is_found() -> None:
    """Batch norm of four channels by three weights: the CPU (2.13) reads a fourth one."""
    norm = torch.ops.aten._native_batch_norm_legit.no_stats
    weights = ["@float32 3 dense 1 2", "@float32 3 dense -1 1", True, 0.1, 1e-5]

    assert reads_beyond(norm, [["@float32 1x4x3x5 dense -2 2", *weights], {}], 0)
    assert not reads_beyond(norm, [["@float32 4x3x5 dense -2 2", *weights], {}], 0)


def _asked_freely(name: str, *args: Any, **given: Any) -> Any:
    packet, _, rest = name.partition(".")
    with ChoosesOtherwise():
        return getattr(getattr(torch.ops.aten, packet), rest)(*args, **given)


def test_what_nobody_asked_for_comes_out_otherwise() -> None:
    x = torch.tensor([[1.0, 2.0], [2.0, 1.0]])
    failed, info = _asked_freely("linalg_cholesky_ex.default", x)
    _, inverse, counts = _asked_freely("unique_dim_consecutive.default", x, 0, True, False)

    assert info.item() == 2
    assert failed.isnan().all()
    assert inverse.numel() == 2
    assert counts.numel() == 0
    assert _asked_freely("_unique.default", x)[1] is None


def test_a_factorisation_that_succeeds_stays() -> None:
    x = torch.tensor([[2.0, 1.0], [1.0, 3.0]])

    assert torch.equal(_asked_freely("linalg_cholesky_ex.default", x)[0], torch.linalg.cholesky(x))
    assert torch.equal(_asked_freely("geqrf.default", x)[1], torch.geqrf(x)[1])
    assert _asked_freely("geqrf.default", torch.ones(3, 2))[1].isnan().all()


@pytest.mark.parametrize(("scale", "is_free"), [(2.0, False), (0.5, True), (None, False)])
def test_scales_that_contradict_the_sizes_have_no_answer(scale: float | None, is_free: bool) -> None:
    answer = _asked_freely("upsample_linear1d.default", torch.ones(1, 1, 4), [8], False, scale)

    assert bool(answer.eq(77).all()) == is_free


def test_what_another_back_end_kept_is_not_taken() -> None:
    grad, x = torch.ones(3), torch.tensor([-1.0, 0.0, 2.0])
    right = torch.ops.aten.log_sigmoid_backward(grad, x, torch.ops.aten.log_sigmoid_forward(x)[1])

    assert torch.allclose(_asked_freely("log_sigmoid_backward.default", grad, x, torch.ones(3)), right)
    with pytest.raises(RuntimeError, match="mask is torch"):
        _asked_freely("native_dropout_backward.default", grad, torch.ones(3), 2.0)


def test_a_mean_that_is_kept_for_the_gradient_is_not_compared() -> None:
    """MPS and CUDA keep float32 for an input in half precision, the CPU its dtype; the output counts all the same."""
    name = "_native_batch_norm_legit.no_stats"
    calls = stored_calls()[name]
    norm = torch.ops.aten._native_batch_norm_legit.no_stats

    class Keeps(torch.utils._python_dispatch.TorchDispatchMode):
        place = 1

        def __torch_dispatch__(self, called: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
            answer = called(*args, **(kwargs or {}))
            if called is not norm:
                return answer
            parts = list(answer)
            parts[self.place] = parts[self.place].double() + 1
            return tuple(parts)

    ask_calls(name, calls, Bench(torch.device("cpu"), around=Keeps))
    Keeps.place = 0
    with pytest.raises(AssertionError, match="call 0: answer 0"):
        ask_calls(name, calls, Bench(torch.device("cpu"), around=Keeps))


def test_an_overloads_operands_are_drawn_outside_of_the_device_run() -> None:
    """A plant in arange or remainder had been caught by the calls of every overload."""
    seen: set[str] = set()

    class Recorded(torch.utils._python_dispatch.TorchDispatchMode):
        def __torch_dispatch__(self, called: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
            seen.add(str(called))
            return called(*args, **(kwargs or {}))

    ask_calls("neg.default", [[["@float32 3x4 step -1 1"], {}]], Bench(torch.device("cpu"), around=Recorded))

    assert "aten.neg.default" in seen
    assert not seen & {"aten.arange.default", "aten.remainder.Scalar", "aten.mul.Tensor"}
    assert "aten.equal.default" not in seen  # that it wrote to nothing is seen when the run is over
