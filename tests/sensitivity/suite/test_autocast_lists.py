"""Under autocast an answer has the dtype that the lists of its own device give: those of CUDA are not the CPU's."""

from __future__ import annotations

import warnings
from typing import Any

import pytest
import torch
from torch.overrides import TorchFunctionMode

from engine import forms
from engine.cases import Case
from engine.runs import Bench
from engine.states import answers_of, run_case
from suite_in_process import Suite

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


def test_fake_tensors_have_an_answer_for_each_that_a_case_under_autocast_asks() -> None:
    """As the CPU itself answers: a list that is not known would let any dtype pass."""
    bench, count, wrong = Bench(CPU), 0, []
    with warnings.catch_warnings():
        for case in (one for one in Suite(("autocast",)).cases if one.autocast is not None):
            lists = forms.fake_answers(case, bench, (0, 0))
            for leaf in answers_of(case, bench, bench.same(), (0, 0)):
                if leaf.path.startswith("base") or not isinstance(leaf.value, torch.Tensor):
                    continue
                count += 1
                if leaf.path not in lists or lists[leaf.path].value.dtype != leaf.value.dtype:
                    wrong.append((case.id, leaf.path))

    assert wrong == []
    assert count > 1000
