"""The generated conditions: rows fit their descriptions, a wrong row prints its program, a gap is no pass."""

from __future__ import annotations

import pickle
from typing import Any

import pytest
import torch
from torch.utils._python_dispatch import TorchDispatchMode

import choose_rows
import conditions_reach
from conditions import Conditions, Facts, is_view, layout_of
from device_suite.compare import Leaf, Mismatch, compare_leaf
from device_suite.conditions.asking import ask_rows
from device_suite.conditions.listed import all_rows, rows_of, signature, stored_rows
from device_suite.conditions.program import program
from device_suite.runs import Bench
from device_suite.states import Refused
from engine.description import Operator, Row
from generic_plants import GenericPlant
from operators import tables
from row_making import Pairing

SPECS = {name: spec for table in tables() for name, spec in table.operators.items()}
CPU = torch.device("cpu")


def test_every_description_has_rows_and_every_row_a_description() -> None:
    stored = stored_rows()

    assert sorted(set(SPECS) ^ set(stored)) == []
    assert [name for name, spec in SPECS.items() if stored[name]["factors"] != signature(spec)] == []
    assert [name for name, spec in SPECS.items() if len(rows_of(spec)) < 4] == []


@pytest.mark.parametrize("name", ["add", "sum", "gather", "mm"])
def test_rows_meet_every_dtype_layout_and_argument(name: str) -> None:
    spec = SPECS[name]
    met = {(factor, str(level)) for row in rows_of(spec) for factor, level in row.levels.items()}

    assert [
        (factor, level) for factor, levels in spec.factors for level in levels if (factor, str(level)) not in met
    ] == []


def test_a_wrong_row_prints_a_program_that_runs() -> None:
    spec = SPECS["neg"]
    row = next(row for row in rows_of(spec) if row.levels["@form"] == "call" and row.levels["@size"] == "small")
    plant = GenericPlant("aten.neg.default", "tail")

    with pytest.raises(Mismatch) as caught:
        ask_rows(spec, [row], Bench(CPU, around=lambda: plant))
    program = [line for line in str(caught.value).splitlines() if line][1:6]

    assert program[0].startswith("import torch")
    assert len(program) == 5
    exec("\n".join(program).replace("'mps'", "'cpu'"), {})


def test_what_no_back_end_answers_is_refused_not_passed() -> None:
    spec = Operator("no_such_operator")
    row = Row("0000", 0, {"@form": "call", "@dtype": torch.float32, "@size": "small", "@values": "plain"})

    with pytest.raises(Refused, match="has no no_such_operator"):
        ask_rows(spec, [row], Bench(CPU))


@pytest.mark.parametrize(("name", "dtype"), [("cumsum", "int64"), ("eq", "int64"), ("bitwise_and", "uint8")])
def test_a_condition_is_a_case_of_its_own(name: str, dtype: str) -> None:
    assert any(str(row.levels["@dtype"]) == f"torch.{dtype}" for row in rows_of(SPECS[name]))


def test_a_bound_that_everything_keeps_passes_nothing() -> None:
    """Met with nextafter of infinity: float64's answer is no reference for float32, and allowed any."""
    want = Leaf("x", torch.tensor([1.7e308], dtype=torch.float64))
    own = Leaf("x", torch.tensor([3.4e38]))

    with pytest.raises(Mismatch):
        compare_leaf(Leaf("x", torch.tensor([5.0])), want, lambda: own, terms=1, factor=16.0)


def test_a_program_says_where_a_name_is_explained_that_torch_has_not() -> None:
    for name, is_own in (("index_fill", True), ("sum", False)):
        row = rows_of(SPECS[name])[0]
        assert ("# index_fill: `act` of that name" in program(SPECS[name], row)) is is_own


def test_pairing_covers_every_pair_that_the_cpu_answers() -> None:
    made: Any = Pairing(SPECS["softmax_masked"])
    made.make()

    assert made.left == set()
    assert made.dropped == 0


def test_fewer_rows_meet_what_all_rows_meet() -> None:
    spec = SPECS["fft_fftshift"]
    rows = all_rows(spec)
    met = [choose_rows.meet(spec, row) for row in rows]
    chosen = {row.digits for row in choose_rows.choose(met)}
    kept = [one for one in met if one.row.digits in chosen]

    assert 0 < len(chosen) < len(rows)
    assert set().union(*(one.pairs for one in kept)) == set().union(*(one.pairs for one in met))
    assert set().union(*(one.conditions for one in kept)) == set().union(*(one.conditions for one in met))
    assert {row.digits for row in rows_of(spec)} < {row.digits for row in rows}


def test_kept_calls_can_be_read_again() -> None:
    mode = Conditions()
    with mode:
        x = torch.ones(4, device=torch.device("cpu", 0))
        torch.empty(0).set_(x.untyped_storage(), 1, (2,))
        x.neg()

    kept = [pickle.loads(pickle.dumps(facts.samples)) for facts in mode.facts.values()]

    assert torch.ops.aten.set_.source_Storage_storage_offset in mode.facts
    assert any(kept)


def test_a_gradient_without_memory_is_recorded() -> None:
    mode = Conditions()
    x = torch.ones(3, requires_grad=True)
    with mode:
        torch.autograd.grad(x.sgn(), x, torch.ones(3))  # autograd answers with zeros that have no memory

    assert torch.ops.aten.sgn.default in mode.facts


def test_what_takes_more_memory_than_a_machine_has_is_out_of_reach(monkeypatch: pytest.MonkeyPatch) -> None:
    def asked(func: Any, facts: Any) -> conditions_reach.Reach:
        whole = conditions_reach._accepted(torch.empty, ((16 << 30,),), {"dtype": torch.uint8})
        return conditions_reach.Reach(frozenset(), frozenset(), frozenset({str(whole)}), frozenset())

    monkeypatch.setattr(conditions_reach, "reach_of", asked)
    found = conditions_reach.reach_in_a_child(torch.ops.aten.neg.default, Facts())

    assert found is not None
    assert found.sizes == {"False"}


def test_an_argument_that_the_cpu_refuses_is_not_reachable() -> None:
    mode = Conditions()
    with mode:
        torch.linalg.lu_factor_ex(torch.eye(3))
        torch.sum(torch.ones(3, 4), 0)
    func, other = torch.ops.aten.linalg_lu_factor_ex.default, torch.ops.aten.sum.dim_IntList

    assert ("pivot", "false") in conditions_reach.schema_arguments(func)
    assert ("pivot", "false") not in conditions_reach.reach_of(func, mode.facts[func]).arguments
    assert ("keepdim", "true") in conditions_reach.reach_of(other, mode.facts[other]).arguments


def test_a_view_is_no_kernel_and_a_copy_is_one() -> None:
    mode, x = Conditions(), torch.zeros(2, 3)
    with mode:
        x.t().clone()

    assert [form[0] for form in mode.keys if not is_view(form[0])] == [torch.ops.aten.clone.default]


def test_a_mode_records_dtype_layout_size_and_argument() -> None:
    mode = Conditions()
    with mode:
        torch.sum(torch.zeros(3, 1031, dtype=torch.int64).t(), 0, keepdim=True)
    facts = mode.facts[torch.ops.aten.sum.dim_IntList]

    assert facts.dtypes == {(0, "int64")}
    assert facts.layouts == {(0, "transposed")}
    assert {"rank 2", ">1024", "odd", "prime"} <= facts.sizes
    assert ("keepdim", "true") in facts.arguments
    assert layout_of(torch.zeros(2, 3, 4, 5).contiguous(memory_format=torch.channels_last)) == "channels_last"


def test_a_call_that_is_refused_meets_no_condition() -> None:
    with Conditions() as recorder, pytest.raises(RuntimeError):
        torch.mm(torch.ones(2, 3), torch.ones(2, 3))
    assert torch.ops.aten.mm.default not in recorder.facts


def test_where_the_cpu_writes_out_wrongly_its_error_is_no_bound() -> None:
    """The CPU (2.13) writes a transposed out= of avg_pool3d as if it were dense: eight times that error allowed all."""
    spec = SPECS["avg_pool3d_out"]
    rows = [
        row for row in all_rows(spec) if row.levels["@layout0"] == "transposed" and row.levels["@values"] == "plain"
    ]
    rows = [row for row in rows if row.levels["@size"] != "empty"]

    class Halved(TorchDispatchMode):
        def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
            answer = func(*args, **(kwargs or {}))
            return answer.mul_(0.5) if str(func) == "aten.avg_pool3d.out" else answer

    assert rows
    ask_rows(spec, rows, Bench(torch.device("cpu")))
    for row in rows:
        with pytest.raises(Mismatch):
            ask_rows(spec, [row], Bench(torch.device("cpu"), around=Halved))


def test_what_wide_values_are_allowed_is_not_allowed_to_others() -> None:
    spec = SPECS["cross"]
    rows = [row for row in all_rows(spec) if row.levels["@dtype"] == torch.bfloat16 and row.levels["@form"] == "call"]
    plain = [row for row in rows if row.levels["@values"] == "plain" and row.levels["@size"] not in ("empty", "none")]

    class Off(TorchDispatchMode):
        def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
            answer = func(*args, **(kwargs or {}))
            return answer + 4 if str(func) == "aten.linalg_cross.default" else answer

    assert plain
    for row in plain:
        with pytest.raises(Mismatch):
            ask_rows(spec, [row], Bench(CPU, around=Off))
