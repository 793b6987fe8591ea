"""The sweep over upstream's samples: it notices faults, says why it cannot ask, and takes no draw for an answer."""

from __future__ import annotations

import sys
import unittest
from types import SimpleNamespace
from typing import Any

import pytest
import torch

from device_suite import opinfo_marks
from device_suite.compare import Mismatch
from device_suite.opinfo import Sweep, load_op_db, name_of, why_left_out
from device_suite.opinfo_run import ask_operator
from device_suite.runs import Bench
from device_suite.states import Refused
from generic_plants import GenericPlant

CPU = torch.device("cpu")


def operator(name: str) -> Any:
    return next(op for op in load_op_db() if name_of(op) == name)


def ask(name: str, *, plant: Any = None, dtype: torch.dtype = torch.float32, samples: int = 2) -> Any:
    bench = Bench(CPU, around=(lambda: plant) if plant else None)
    return ask_operator(f"opinfo-{name}", operator(name), dtype, samples, bench)


@pytest.mark.parametrize(
    ("name", "overload", "kind", "dtype"),
    [
        ("erf", "aten.erf.default", "scaled", torch.float32),
        ("erf", "aten.erf.default", "tail", torch.bfloat16),
        ("erf", "aten.erf.default", "strides", torch.float32),
        ("erf", "aten.erf_.default", "lost", torch.float32),
        ("erf", "aten.erf.out", "lost", torch.float32),
        ("nn.functional.gelu", "aten.gelu_backward.default", "scaled", torch.float32),
        ("mm", "aten.mm.default", "tail", torch.float32),
        ("mm", "aten.mm.default", "tail", torch.int64),
        ("cumsum", "aten.cumsum.default", "tail", torch.int64),
    ],
)
def test_a_fault_is_noticed(name: str, overload: str, kind: str, dtype: torch.dtype) -> None:
    plant = GenericPlant(overload, kind)
    healthy = ask(name, dtype=dtype)

    assert healthy.max_rel_scaled < 0.01
    with pytest.raises(Mismatch, match="sample"):
        ask(name, plant=plant, dtype=dtype)
    assert plant.changed > 0


def test_without_upstreams_module_each_file_is_one_case_that_says_why(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "torch.testing._internal.common_methods_invocations", None)
    load_op_db.cache_clear()
    try:
        (case,) = Sweep(torch.float32, samples=2).listed(full=True)
        with pytest.raises(Refused, match=r"no upstream samples: \w+Error"):
            case.act(Bench(CPU))
    finally:
        load_op_db.cache_clear()


def test_a_module_of_another_form_is_no_pass_either(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("device_suite.opinfo.load_op_db", lambda: (SimpleNamespace(name="add"),))
    (case,) = Sweep(torch.float32, samples=2).listed(full=True)

    with pytest.raises(Refused, match="unknown form: AttributeError"):
        case.act(Bench(CPU))


def test_without_full_nothing_is_imported_and_one_case_is_listed() -> None:
    assert [case.id for case in Sweep(torch.int64, samples=2).listed(full=False)] == ["opinfo-int64"]


def test_a_left_out_operator_is_listed_and_refused_with_its_reason() -> None:
    listed = {case.id: case for case in Sweep(torch.float32, samples=2).listed(full=True)}

    assert len(listed) > 300
    with pytest.raises(Refused, match="random by design"):
        listed["opinfo-bernoulli-float32"].act(Bench(CPU))
    assert why_left_out("sort", torch.float16) and why_left_out("sort", torch.float32) is None


def test_a_sample_that_draws_is_no_wrong_answer() -> None:
    class OtherSeed(GenericPlant):
        """The device's own stream of numbers."""

        def __enter__(self) -> Any:
            torch.default_generator.manual_seed(99)
            return super().__enter__()

    op = SimpleNamespace(
        name="nn.functional.dropout",
        op=lambda x: torch.nn.functional.dropout(x, 0.5),
        sample_inputs=lambda *_, **__: [upstream_sample(torch.randn(50))],
    )
    bench = Bench(CPU, around=lambda: OtherSeed("none", "scaled"))

    with pytest.raises(Refused, match="differ from seed to seed"):
        ask_operator("opinfo-drawn", op, torch.float32, 2, bench)


def upstream_sample(x: torch.Tensor) -> Any:
    return SimpleNamespace(input=x, args=(), kwargs={}, output_process_fn_grad=lambda out: out, broadcasts_input=False)


def test_what_upstream_skips_on_mps_is_not_asked_there(monkeypatch: pytest.MonkeyPatch) -> None:
    marks = SimpleNamespace(get_decorators=lambda group, test, device, dtype, params: [unittest.skip("aborts")])
    monkeypatch.setattr(opinfo_marks, "_marked", lambda op: marks)

    assert opinfo_marks.upstream_expects(operator("erf"), torch.float32, "mps") == "skip"
    assert opinfo_marks.upstream_expects(operator("erf"), torch.float32, "cuda") is None


def test_where_upstream_expects_nothing_nothing_is_excused() -> None:
    assert not opinfo_marks.upstream_excuses_out(operator("erf"), torch.float32, "cpu")
    assert opinfo_marks.upstream_excuses_out(operator("narrow_copy"), torch.float32, "cpu")
    assert opinfo_marks.upstream_expects(SimpleNamespace(), torch.float32, "mps") is None
