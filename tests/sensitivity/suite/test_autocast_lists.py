"""Under autocast an answer has the dtype that the lists of its own device give: those of CUDA are not the CPU's."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from torch.overrides import TorchFunctionMode

import operators
import transforms
from engine import forms
from engine.cases import Case
from engine.reference import own_answers
from engine.runs import Bench
from engine.sampler import Case as DrawnCase
from engine.sampler import draw
from engine.states import answers_of, run_case
from engine.trial import reference_of
from transforms import autocast

LOW = torch.bfloat16
CPU, CUDA = torch.device("cpu"), torch.device("cuda")


def _norms(run: Any, x: torch.Tensor) -> Any:
    with torch.autocast(run.device.type, LOW, enabled=not run.precise):
        low = x.to(run.cast(LOW))
        return [torch.linalg.matrix_norm(low), torch.nn.functional.normalize(low, dim=1), low.exp(), low.abs()]


CASE = Case("norms", "autocast", _norms, make=lambda d: d.normal(4, 4), states=("fresh",), autocast=LOW, factor=16.0)


class AsOn(TorchFunctionMode):
    """A device that keeps some functions in float32."""

    def __init__(self, *names: str) -> None:
        super().__init__()
        self._names = names

    def __torch_function__(self, function: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        answer = function(*args, **(kwargs or {}))
        return answer.float() if getattr(function, "__name__", "") in self._names else answer


@pytest.fixture
def cuda(monkeypatch: pytest.MonkeyPatch) -> dict[str, Any]:
    """Return what CUDA's lists give: this torch has them, and no such device."""
    monkeypatch.setattr(torch.cuda.amp.common, "amp_definitely_not_available", lambda: False)
    monkeypatch.setattr(torch.cuda, "is_bf16_supported", lambda *_: True)
    found = forms.by_policy(CASE, Bench(CUDA), (0, 0))
    assert found is not None
    return found


def test_the_lists_of_cuda_are_not_those_of_the_cpu(cuda: dict[str, Any]) -> None:
    own = [leaf.value.dtype for leaf in answers_of(CASE, Bench(CPU), Bench(CPU).same(), (0, 0))[:4]]

    assert own == [LOW, LOW, LOW, LOW]
    wide = torch.float32
    assert [cuda[f"out[{place}]"].value.dtype for place in range(4)] == [wide, wide, wide, LOW]
    assert forms.by_policy(CASE, Bench(CPU), (0, 0)) is None


def test_a_device_is_right_by_its_own_lists(cuda: dict[str, Any], monkeypatch: pytest.MonkeyPatch) -> None:
    def as_cuda() -> Any:
        return AsOn("linalg_matrix_norm", "normalize", "exp")

    with pytest.raises(AssertionError, match=r"dtype torch\.float32, the CPU gives torch\.bfloat16"):
        run_case(CASE, Bench(CPU, around=as_cuda))
    monkeypatch.setattr(forms, "by_policy", lambda *_: cuda)

    run_case(CASE, Bench(CPU, around=as_cuda))
    with pytest.raises(AssertionError, match=r"dtype torch\.bfloat16, autocast's lists for the device give"):
        run_case(CASE, Bench(CPU))
    with pytest.raises(AssertionError, match=r"out\[3\]: dtype torch.float32, autocast's lists"):
        run_case(CASE, Bench(CPU, around=lambda: AsOn("linalg_matrix_norm", "normalize", "exp", "abs")))


def test_a_broader_answer_has_the_bound_of_what_it_was_computed_of(monkeypatch: pytest.MonkeyPatch) -> None:
    """float32 that came of bfloat16 is no closer than bfloat16."""

    class Rounded(AsOn):
        def __torch_function__(self, function: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
            answer = super().__torch_function__(function, types, args, kwargs)
            return answer * (1 + 2.0**-8) if getattr(function, "__name__", "") == "linalg_matrix_norm" else answer

    wide = forms.fake_answers(CASE, Bench(CPU), (0, 0))
    wide["out[0]"] = wide["out[0]"]._replace(value=wide["out[0]"].value.float())
    monkeypatch.setattr(forms, "by_policy", lambda *_: wide)

    run_case(CASE, Bench(CPU, around=lambda: Rounded("linalg_matrix_norm")))


def test_fake_tensors_have_an_answer_for_most_that_a_drawn_case_under_autocast_computes() -> None:
    """As the CPU itself answers: a list that is not known would let any dtype pass."""
    way, bench, known, wrong = transforms.known()["autocast"], Bench(CPU), 0, []
    described = {name: one for name, one in operators.described().items() if way.applies(one)}
    for name, operator in described.items():
        call = draw(DrawnCase(name, way.name, 0), operator, way)
        try:
            truth = reference_of(call, way, bench)
            own = own_answers(truth)
        except Exception:  # the CPU refuses it
            continue
        lists = autocast._by_policy(way, call, bench, truth)
        known += lists is not None
        if lists is not None and [one.dtype for one, _ in lists] != [one.dtype for one, _ in own]:
            wrong.append(name)

    assert wrong == ["affine_grid", "affine_grid_generator"]
    assert known > 0.9 * len(described)


def test_what_fake_tensors_get_wrong_on_the_cpu_they_do_not_decide_elsewhere(monkeypatch: pytest.MonkeyPatch) -> None:
    way, real = transforms.known()["autocast"], autocast._by_policy
    monkeypatch.setattr(autocast, "_by_policy", lambda way, call, bench, truth: real(way, call, Bench(CPU), truth))
    for name, is_known in (("affine_grid", False), ("exp", True)):
        call = draw(DrawnCase(name, way.name, 0), operators.described()[name], way)
        assert call is not None
        truth = reference_of(call, way, Bench(CPU))
        assert (way.policy(call, Bench(CUDA), truth) is not None) == is_known, name
