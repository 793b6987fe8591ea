"""The drawn cases: reproducible, in one order whatever the budget, and each transformation notices what it is for."""

from __future__ import annotations

import contextlib
import itertools
import math
import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any, Callable, Iterator

import pytest
import torch

import operators
import suite_in_process
import transforms
from engine import findings, sampler, trial
from engine.budget import seconds_of
from engine.compare import Leaf, Mismatch, compare_leaf
from engine.keys import Dispatched
from engine.runs import Bench
from engine.sampler import Case, Sampler
from engine.states import Refused
from engine.transformation import Formed
from injecting import Faults
from rounding import ChoosesOtherwise, RoundsOtherwise
from transforms import autocast

DEVICE_TESTS = suite_in_process.DEVICE_TESTS
OPERATORS, TRANSFORMS = operators.described(), transforms.known()


def _make(text: str, around: Any = None) -> Any:
    case = Case.of(text)
    bench = Bench(torch.device("cpu"), around=around)
    return trial.make(case, OPERATORS[case.operator], TRANSFORMS[case.transformation], bench)


def _first(count: int, seed: int = 0) -> list[str]:
    found = sampler.chosen(Sampler(OPERATORS, TRANSFORMS, seed), cases=count, most_keys=10**9)
    return [str(drawn.case) for drawn in found]


def _levels(text: str) -> str:
    case = Case.of(text)
    call = sampler.draw(case, OPERATORS[case.operator], TRANSFORMS[case.transformation])
    return str(call and sorted((name, str(level)) for name, level in call.levels.items()))


def test_an_id_alone_is_the_same_case_in_another_process() -> None:
    ids = ("conv2d:gradient:17", "add:layout:1000003", "index_select:refusal:5")
    program = f"from test_drawn_cases import _levels; print('\\n'.join(map(_levels, {ids})))"
    path = os.pathsep.join(map(str, (DEVICE_TESTS, DEVICE_TESTS.parent / "sensitivity", Path(__file__).parent)))
    done = subprocess.run(
        [sys.executable, "-c", program],
        env={**os.environ, "PYTHONPATH": path, "PYTHONHASHSEED": "77"},
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stdout.splitlines() == [_levels(one) for one in ids]


def test_a_smaller_budget_is_the_beginning_of_a_larger_one_and_another_seed_draws_others() -> None:
    larger = _first(1500)
    assert larger[:1000] == _first(1000)
    assert set(larger[900:]).isdisjoint(_first(1500, seed=1)[900:])
    assert [Case.of(one).transformation for one in larger[:800]] == ["common"] * 800


def test_operators_of_a_small_share_come_late() -> None:
    shares = [OPERATORS[Case.of(one).operator].share for one in _first(len(OPERATORS))]
    assert shares == sorted(shares, reverse=True)
    assert shares[-1] < shares[0]


def test_the_order_meets_more_pairs_than_chance() -> None:
    few = {name: OPERATORS[name] for name in ("add", "layer_norm", "conv2d", "gather")}
    chosen = sampler.chosen(Sampler(few, TRANSFORMS), cases=200, most_keys=10**9)
    at_random = [Case(one.case.operator, one.case.transformation, 5000 + one.case.seed) for one in chosen]
    assert _pairs_met([one.case for one in chosen]) > _pairs_met(at_random)


def _pairs_met(cases: list[Case]) -> int:
    met = set()
    for case in cases:
        call = sampler.draw(case, OPERATORS[case.operator], TRANSFORMS[case.transformation])
        levels = [("", case.transformation), *(call.levels.items() if call else ())]
        met |= {(case.operator, *map(str, pair)) for pair in itertools.combinations(levels, 2)}
    return len(met)


faults = Faults()


@faults.dispatched("aten.mul.Tensor")
def strides_ignored(hit: Callable[[], None], func: Any, x: Any, *args: Any, **kwargs: Any) -> Any:
    """A tensor that is not contiguous is read as it lies."""
    if x.is_contiguous() or not x.numel():
        return func(x, *args, **kwargs)
    hit()
    return func(torch.as_strided(x, x.shape, torch.empty(x.shape).stride(), 0), *args, **kwargs)


@faults.dispatched("aten.exp.default")
def half_is_wrong(hit: Callable[[], None], func: Any, x: Any) -> Any:
    """Half precision is wrong by a tenth."""
    if x.dtype != torch.float16:
        return func(x)
    hit()
    return func(x) * 1.1


@faults.dispatched("aten.exp.default")
def many_are_wrong(hit: Callable[[], None], func: Any, x: Any) -> Any:
    """Past 2**16 elements the last is 0."""
    answer = func(x)
    if x.numel() > 1 << 16:
        hit()
        answer.view(-1)[-1] = 0
    return answer


@faults.dispatched("aten.hardsigmoid.default")
def nan_becomes_zero(hit: Callable[[], None], func: Any, x: Any) -> Any:
    """What is no number becomes 0."""
    hit()
    return func(x).nan_to_num(0.0)


@faults.dispatched("aten.sum.dim_IntList")
def kept_dimension_is_lost(hit: Callable[[], None], func: Any, x: Any, dim: Any, keepdim: Any = False, **k: Any) -> Any:
    """keepdim changes the numbers."""
    hit()
    return func(x, dim, keepdim, **k) + (1 if keepdim else 0)


@faults.dispatched("aten.mul_.Tensor")
def write_is_lost(hit: Callable[[], None], func: Any, x: Any, *args: Any) -> Any:
    """Nothing is written."""
    hit()
    return x


@faults.dispatched("aten.mul.out", "aten.mul_.Tensor")
def reads_what_out_held(hit: Callable[[], None], func: Any, x: Any, y: Any, **out: Any) -> Any:
    """NaN in an out= stays."""
    if "out" not in out:
        return func(x, y)
    nan = out["out"].isnan() if out["out"].is_floating_point() else None
    answer = func(x, y, **out)
    if nan is not None and nan.shape == answer.shape and bool(nan.any()):
        hit()
        answer.masked_fill_(nan, math.nan)
    return answer


@faults.dispatched("aten.sigmoid_backward.default")
def gradient_is_doubled(hit: Callable[[], None], func: Any, *args: Any) -> Any:
    """The gradient is double what it should be."""
    hit()
    return func(*args) * 2


@faults.dispatched("aten.cos.default")
def second_gradient_is_zero(hit: Callable[[], None], func: Any, x: Any) -> Any:
    """The cosine, which is in the gradient of the sine's gradient, is a tenth too large."""
    hit()
    return func(x) * 1.1


@faults.dispatched("aten.exp.default")
def answers_from_before(hit: Callable[[], None], func: Any, x: Any) -> Any:
    """A second call of the same shape gets the first call's answer."""
    key = tuple(x.shape), x.dtype
    if key in _BEFORE:
        hit()
        return _BEFORE[key].clone()
    _BEFORE[key] = func(x)
    return _BEFORE[key].clone()


_BEFORE: dict[Any, Any] = {}


@faults.dispatched("aten.mul.Tensor")
def shared_memory_is_zero(hit: Callable[[], None], func: Any, x: Any, y: Any) -> Any:
    """Two operands that share memory give 0."""
    if not isinstance(y, torch.Tensor) or x.untyped_storage().data_ptr() != y.untyped_storage().data_ptr():
        return func(x, y)
    hit()
    return func(x, y) * 0


@faults.dispatched("aten.exp.default")
def writes_beside(hit: Callable[[], None], func: Any, x: Any) -> Any:
    """The place before the operand is overwritten."""
    if x.storage_offset():
        hit()
        torch.as_strided(x, (1,), (1,), x.storage_offset() - 1).fill_(9)
    return func(x)


@faults.dispatched("aten.exp.default")
def slice_is_read_from_its_beginning(hit: Callable[[], None], func: Any, x: Any) -> Any:
    """An offset is dropped."""
    if not x.storage_offset():
        return func(x)
    hit()
    return func(torch.as_strided(x, x.shape, x.stride(), 0))


@faults.dispatched("aten.mm.default")
def float32_under_autocast(hit: Callable[[], None], func: Any, x: Any, y: Any) -> Any:
    """A product of half precision stays float32."""
    if x.dtype not in (torch.float16, torch.bfloat16):
        return func(x, y)
    hit()
    return func(x, y).float()


@faults.called(torch.gather, torch.Tensor.gather)
def accepts_anything(hit: Callable[[], None], func: Any, x: Any, *args: Any, **kwargs: Any) -> Any:
    """What is refused is answered with the operand."""
    try:
        return func(x, *args, **kwargs)
    except Exception:
        hit()
        return x


NOTICED = {
    "layout": ("mul", "strides_ignored"),
    "dtype": ("exp", "half_is_wrong"),
    "size": ("exp", "many_are_wrong"),
    "special": ("hardsigmoid", "nan_becomes_zero"),
    "option": ("sum", "kept_dimension_is_lost"),
    "inplace": ("mul", "write_is_lost"),
    "out": ("mul", "reads_what_out_held"),
    "gradient": ("sigmoid", "gradient_is_doubled"),
    "second_gradient": ("sin", "second_gradient_is_zero"),
    "repeated": ("exp", "answers_from_before"),
    "alias": ("mul", "shared_memory_is_zero"),
    "memory": ("exp", "writes_beside"),
    "chained": ("exp", "slice_is_read_from_its_beginning"),
    "autocast": ("mm", "float32_under_autocast"),
    "refusal": ("gather", "accepts_anything"),
}


def test_every_transformation_has_a_fault_that_it_is_for() -> None:
    assert set(NOTICED) == set(TRANSFORMS) - {"common"}


@pytest.mark.parametrize("name", NOTICED)
def test_a_transformation_notices_its_fault(name: str) -> None:
    operator, fault = NOTICED[name]
    ids = [f"{operator}:{name}:{seed}" for seed in range(1, 60)]
    assert any(_verdict(one, faults.makers[fault]) == "wrong" for one in ids)
    assert all(_verdict(one) != "wrong" for one in ids)


def _verdict(text: str, around: Any = None) -> str:
    _BEFORE.clear()
    try:
        _make(text, around)
    except Refused:
        return "refused"
    except Mismatch:
        return "wrong"
    return "right"


def test_the_cpu_answers_each_operator_in_its_most_common_form() -> None:
    """Else a mistake in a description reads as a refusal, and the operator is never tested."""
    refused = {}
    for name, operator in OPERATORS.items():
        try:
            trial.prepared(Case.of(f"{name}:common:0"), operator, TRANSFORMS["common"], Bench(torch.device("cpu")))
        except Refused as why:
            refused[name] = str(why)
    assert refused == {}


@pytest.mark.parametrize("around", [None, lambda: RoundsOtherwise(2.0)], ids=["healthy", "rounds_otherwise"])
def test_no_case_calls_a_right_device_wrong(around: Any) -> None:
    assert [one for one in _first(5000, seed=7)[::25] if _verdict(one, around) == "wrong"] == []


@pytest.mark.parametrize(
    "text", ["nanquantile_many:special:7000003", "nanquantile_many:special:5", "quantile_many:special:29"]
)
def test_a_quantile_between_a_number_and_infinity_is_open(text: str) -> None:
    assert _verdict(text, lambda: RoundsOtherwise(2.0)) == "right"


# Where CUDA, which is right, was called wrong: equal numbers, writes to one place, NaN as a whole number.
CHOICES = ("msort:gradient", "sort:refusal", "sort:repeated", "topk_many:refusal", "scatter:special", "index_copy:size",
           "named:size", "named:memory", "special_log1p:refusal")  # fmt: skip


@pytest.mark.parametrize("kind", CHOICES)
def test_what_an_operator_leaves_open_is_not_called_wrong(kind: str) -> None:
    found = [_verdict(f"{kind}:{seed}", ChoosesOtherwise) for seed in (*range(1, 20), *range(1000001, 1000010))]
    assert "right" in found
    assert "wrong" not in found


@pytest.mark.parametrize(
    "text",
    [
        "median:chained:11000003",
        "sum:repeated:10000002",
        "max_pool3d_with_indices:special:11000003",
        "sigmoid:inplace:13000001",
    ],
)
def test_what_the_cpu_alone_decided_is_not_called_wrong(text: str) -> None:
    """As on an H200: places among equals behind a producer, infinity as a whole number in the call between, a place
    that the CPU answers beside the window, a complex number past the range or nearly 0."""
    assert _verdict(text, ChoosesOtherwise) == "right"


def test_what_ends_the_process_of_the_cpu_is_not_called() -> None:
    # Without the rule the first is a damaged heap, the second a division by zero.
    assert [_verdict(f"weight_norm:refusal:{seed}") for seed in (2000002, 4000001)] == ["refused", "refused"]
    assert _verdict("convolution_backward1d:memory:4000001") == "right"  # another draw takes its place


@pytest.mark.parametrize("text", ["linalg_lu:dtype:2000002", "linalg_lu:option:3000001"])
def test_an_out_past_which_the_cpu_writes_is_not_called(text: str) -> None:
    # Without the rule it ends the process, here or in a later case: torch.linalg.lu(a, out=views that are not dense).
    case = Case.of(text)
    found = trial.prepared(case, OPERATORS[case.operator], TRANSFORMS[case.transformation], Bench(torch.device("cpu")))
    assert found
    assert {call.levels["@layout0"] for call, _ in found if call.levels["@form"] == "out"} <= {"dense"}


@pytest.mark.parametrize("text", ["exp:layout:5", "mul:out:4"])
def test_a_case_is_made_in_other_ways_that_need_no_other_graph(text: str) -> None:
    case, bench = Case.of(text), Bench(torch.device("cpu"))
    way = TRANSFORMS[case.transformation]
    calls = trial.prepared(case, OPERATORS[case.operator], way, bench)
    seen = Dispatched()
    for call, truth in calls:
        with seen.watching():
            way.perform(call, bench.device_run(), truth)

    assert len(calls) == 6
    assert len(seen.keys) <= 2  # a view of few elements may be contiguous
    assert len({call.levels["@values"] for call, _ in calls}) > 2
    assert len({call.levels["@layout0"] for call, _ in calls}) > 1
    assert {call.levels["@form"] for call, _ in calls} == ({"out"} if ":out:" in text else {"call", "inplace", "out"})


def _found(text: str, fault: Any, seconds: float = 1.0) -> findings.Found | None:
    _BEFORE.clear()
    try:
        _make(text, fault)
    except trial.Wrong as wrong:
        return findings.found(wrong, TRANSFORMS[text.split(":")[1]], Bench(torch.device("cpu"), around=fault), seconds)
    except Refused:
        return None
    return None


def test_cases_of_one_fault_shrink_to_one_finding_whose_script_says_right_or_wrong(tmp_path: Any) -> None:
    every = [_found(f"exp:dtype:{seed}", faults.makers["half_is_wrong"], 20.0) for seed in range(1, 40)]
    found = [one.finding for one in every if one is not None]
    assert len(found) > 2
    assert len({one["id"] for one in found}) == 1
    assert (found[0]["operator"], found[0]["transformation"], found[0]["dtype"]) == ("exp", "dtype", "float16")
    assert found[0]["levels"] == {"@dtype": "torch.float16"}
    text = str(found[0]["script"])
    assert _ran(tmp_path, text, "cpu") == 0
    assert _ran(tmp_path, text, "no_such_device") == 2
    broken = text.replace(
        "    return [", "    run.calls = getattr(run, 'calls', 0) + 1\n    v1 = v1 * run.calls\n    return ["
    )
    assert _ran(tmp_path, broken, "cpu") == 1
    assert _ran(tmp_path, text.replace("torch.exp", "torch.no_such_function"), "cpu") == 3


@pytest.mark.parametrize("name", NOTICED)
def test_each_transformation_has_a_script_that_shows_its_fault_and_only_that(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    operator, fault = NOTICED[name]

    @contextlib.contextmanager
    def around() -> Iterator[None]:
        _BEFORE.clear()  # what a fault keeps it keeps within a run
        with faults.makers[fault]():
            yield

    ids = [f"{operator}:{name}:{seed}" for seed in range(1, 60)]
    found = next(one for one in (_found(text, around) for text in ids) if one is not None)
    text = found.finding["script"]
    assert text is not None, found.finding["no_script"]
    assert len(text.splitlines()) <= 40
    monkeypatch.setattr(sys, "argv", ["script.py", "cpu"])
    assert _exit_of(text, contextlib.nullcontext) == 0
    assert _exit_of(text, around) == 1


@faults.dispatched("aten.exp.default")
def zero_in_inference_mode(hit: Callable[[], None], func: Any, x: Any) -> Any:
    """In inference mode the operand is read as zeros."""
    if not torch.is_inference_mode_enabled():
        return func(x)
    hit()
    return func(torch.zeros_like(x))


def test_a_transformation_within_a_context_needs_no_other_file_for_its_script(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(TRANSFORMS, "inference", Formed("inference", within="torch.inference_mode()"))

    fault = faults.makers["zero_in_inference_mode"]

    found = next(one for one in (_found(f"exp:inference:{seed}", fault) for seed in range(9)) if one is not None)

    text = str(found.finding["script"])
    assert "    with torch.inference_mode():\n" in text
    monkeypatch.setattr(sys, "argv", ["script.py", "cpu"])
    assert _exit_of(text, contextlib.nullcontext) == 0
    assert _exit_of(text, fault) == 1


def _exit_of(text: str, around: Any) -> int:
    """Run a script in this process, with a fault around the run on the device alone."""

    def faulty(run: Any, device: str) -> Any:
        with around():
            return run(device)

    try:
        exec(re.sub(r"(?<!def )\brun\(device\)", "faulty(run, device)", text), {"faulty": faulty})
    except SystemExit as end:
        return int(end.code or 0)
    return 0


def test_what_could_not_be_shrunk_is_one_finding_of_its_operator() -> None:
    every = [_found(f"exp:dtype:{seed}", faults.makers["half_is_wrong"], 0.0) for seed in range(1, 60)]
    assert {one.finding["id"] for one in every if one is not None} == {"exp:dtype:not_shrunk"}


def _ran(folder: Any, text: str, device: str) -> int:
    path = folder / "finding.py"
    path.write_text(text, encoding="utf-8")
    return subprocess.run([sys.executable, str(path), device], capture_output=True, check=False).returncode


def test_a_complex_or_a_bare_nan_that_is_right_is_right() -> None:
    nan = [math.nan, complex(math.nan, 1.0)]
    for value in nan:
        compare_leaf(Leaf("out", value), Leaf("out", value), lambda: None, terms=1, factor=1.0)
    with pytest.raises(Mismatch):
        compare_leaf(Leaf("out", torch.ones(2)), Leaf("out", None), lambda: None, terms=1, factor=1.0)
    with pytest.raises(Mismatch):
        compare_leaf(Leaf("out", math.nan), Leaf("out", 1.0), lambda: None, terms=1, factor=1.0)


def test_at_the_end_of_a_dtypes_range_rounding_decides_what_is_infinite() -> None:
    """A CUDA device was called wrong for it: xlogy of int16 with float16."""
    half = torch.tensor([math.inf, 1.0], dtype=torch.float16)
    for near, other in ((65510.0, 1.0), (-65510.0, 1.0)):
        got = Leaf("out", half * math.copysign(1.0, near))
        truth = torch.tensor([near, math.copysign(other, near)], dtype=torch.float64)
        compare_leaf(got, Leaf("out", truth), lambda: None, terms=1, factor=4.0)
    for far in (60000.0, -65510.0, math.nan):
        with pytest.raises(Mismatch, match="at other places"):
            truth = torch.tensor([far, 1.0], dtype=torch.float64)
            compare_leaf(Leaf("out", half), Leaf("out", truth), lambda: None, terms=1, factor=4.0)


@pytest.mark.parametrize("text", ["xlogy:dtype:1", "atan2:dtype:1", "copysign:dtype:3", "logaddexp:dtype:2"])
def test_an_out_has_the_dtype_of_whole_numbers_beside_fractions(text: str) -> None:
    case = Case.of(text)
    way = TRANSFORMS[case.transformation]
    call = sampler.draw(case, OPERATORS[case.operator], way)
    assert call is not None
    call = call.changed(form="out", dtype=torch.int16, values="plain")
    call = call.with_level("_with", torch.float16).with_level("_cast", "row")
    truth = trial.reference_of(call, way, Bench(torch.device("cpu")))
    assert {dtype for _, dtype in truth.forms} == {torch.float16}


def test_fake_tensors_do_not_say_what_an_operator_made_of_others_gives_under_autocast() -> None:
    """A CUDA device was called wrong for it: pinv, whose products are cast one by one."""
    way, bench = TRANSFORMS["autocast"], Bench(torch.device("cpu"))
    for name, is_known in (("pinv", False), ("exp", True), ("linear", True)):
        call = sampler.draw(Case(name, "autocast", 0), OPERATORS[name], way)
        assert call is not None
        truth = trial.reference_of(call, way, bench)
        assert (autocast._by_policy(way, call, bench, truth) is not None) == is_known, name


def test_conjugated_answers_are_compared() -> None:
    x = torch.tensor([1 + 2j, 3 - 1j])
    compare_leaf(Leaf("out", x.conj()), Leaf("out", x.conj().to(torch.complex128)), lambda: None, terms=1, factor=1.0)


def test_a_dtype_that_is_an_option_is_another_level_than_that_of_the_operands() -> None:
    case = Case("cumprod", "common", 0)
    call = sampler.draw(case, OPERATORS["cumprod"], TRANSFORMS["common"])
    assert call is not None and "dtype" in call.levels
    levels = findings.levels_of(call)

    assert (levels["dtype"], levels["dtype="]) == ("float32", str(call.levels["dtype"]))


@pytest.mark.parametrize("text", ["add:layout", "add:layout:x", ":layout:1", "add"])
def test_what_is_no_id_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="OPERATOR:TRANSFORMATION:SEED"):
        Case.of(text)


def test_a_time_is_read_and_nonsense_is_refused() -> None:
    assert seconds_of("10m") == 600.0
    with pytest.raises(ValueError, match="--time takes"):
        seconds_of("soon")
