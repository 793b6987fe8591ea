"""Asks one of upstream's operators: forward, gradients, in-place and out=, judged by this suite's own comparison.

The truth is float64 on the CPU. Where the device differs from it, the CPU's answer in the operator's own dtype is a
second opinion (the same bound): composite operators round between their parts, and some decide by it.
"""

from __future__ import annotations

import contextlib
import re
import zlib
from typing import Any, Callable, Iterator

import torch

from .compare import Error, Leaf, Mismatch, bits_differ, compare_leaf, kept, read_back
from .opinfo_marks import upstream_excuses_out, upstream_expects
from .opinfo_samples import Sample, draw_samples, tensors_in
from .states import Refused

_POINTWISE = ("UnaryUfuncInfo", "ShapeFuncInfo")
# Sums are accumulated in float32 or wider whatever the dtype, so a longer one costs half precision no more.
_MOST_TERMS = {torch.float16: 64, torch.bfloat16: 64}
# Special functions are approximations with errors of their own on each back end, like pow.
_APPROXIMATE = ("special.", "pow", "float_power", "lgamma", "digamma", "polygamma", "mvlgamma", "igamma", "__rpow__")
# What is zero in exact arithmetic (the gradient of a norm over one element) has its operands' rounding.
_FLOOR = 1e-3
# How back ends word that they lack something; a gap is no wrong answer.
_GAP = re.compile(
    r"not (yet |currently )?(been )?(implemented|supported)|unsupported|n't support|not have support|only supports?\b"
    r"|support (is )?(only|missing)|to be on cpu|requires? .* (library|magma|cusolver|compil)",
    re.IGNORECASE,
)


def ask_operator(case_id: str, op: Any, dtype: torch.dtype, count: int, bench: Any) -> Error:
    """Return the largest error over an operator's samples.

    Raises:
        Mismatch: an answer is wrong; the message names the sample and what was asked.
        Refused: no sample could be asked; the message says why.
    """
    if upstream_expects(op, dtype, bench.device.type) == "skip":
        raise Refused("upstream's own test skips it on this device: it may abort")
    asking = _Asking(case_id, op, dtype, bench)
    for number, sample in enumerate(_samples(op, dtype, count, case_id)):
        asking.ask(number, sample)
    if not asking.asked:
        raise Refused(asking.refusals[0] if asking.refusals else "upstream has no sample of this form")
    return asking.worst


def _samples(op: Any, dtype: torch.dtype, count: int, case_id: str) -> list[Sample]:
    try:
        return draw_samples(op, dtype, count, seed=zlib.crc32(case_id.encode()))
    except Exception as raised:
        raise Refused(f"upstream's samples cannot be drawn: {type(raised).__name__}: {raised}") from raised


class _Asking:
    """One operator and dtype: what was asked so far."""

    def __init__(self, case_id: str, op: Any, dtype: torch.dtype, bench: Any) -> None:
        self._op, self._dtype, self._bench = op, dtype, bench
        self._draw = bench.draw(case_id)
        self._call = _late(op)
        self._factor = 16.0 if op.name.startswith(_APPROXIMATE) else 4.0
        self.asked = 0
        self.refusals: list[str] = []
        self.worst = Error()

    def ask(self, number: int, sample: Sample) -> None:
        """Ask a sample in every way that the CPU answers."""
        for way in (_forward, _in_place, _into_out):
            if way is not _forward and number > 1:  # one sample, in both layouts, shows a write that is lost
                return
            with contextlib.suppress(_NotHere):
                self._compare(way, number, sample)

    def _compare(self, way: Callable[..., Any], number: int, sample: Sample) -> None:
        what = f"sample {number} ({sample.layout}), {way.__name__.strip('_').replace('_', ' ')}"
        grads: list[Any] = []
        same = self._on_the_cpu(way, sample, self._bench.same(), grads, draw=True)
        truth = self._on_the_cpu(way, sample, self._bench.reference(), grads)
        try:
            actual = self._run(way, sample, self._bench.device_run(), grads)
        except Exception as raised:
            self._judge_refusal(what, raised)
            return
        self.asked += 1
        try:
            self._judge(actual, truth, same, self._terms(way, sample))
        except Mismatch as wrong:
            if self._is_random(way, sample, same, grads):
                self.asked -= 1
                self.refusals.append("random: the CPU's own answers differ from seed to seed")
                return
            if way is _into_out and upstream_excuses_out(self._op, self._dtype, self._bench.device.type):
                self.refusals.append(f"out= is wrong, as upstream expects: {wrong}")
                return
            if (expected := upstream_expects(self._op, self._dtype, self._bench.device.type)) is not None:
                raise Refused(f"wrong, as upstream expects ({expected}): {what}: {wrong}") from None
            raise Mismatch(f"{what}: {wrong}", wrong.error) from None

    def _on_the_cpu(self, way: Any, sample: Sample, run: Any, grads: list[Any], *, draw: bool = False) -> list[Leaf]:
        try:
            return self._run(way, sample, run, grads, draw=draw)
        except Exception as raised:
            self.refusals.append(f"the CPU raises {type(raised).__name__}: {raised}")
            raise _NotHere from raised

    def _run(
        self, way: Any, sample: Sample, run: Any, grads: list[Any], *, draw: bool = False, seed: int | None = None
    ) -> list[Leaf]:
        """Return the answers on one run; with `draw` the gradients of its outputs are drawn, as the first run must."""
        copies = run.copy(sample.bases)
        given = None if draw else run.copy(grads)
        run.seed(self._bench.seed if seed is None else seed)
        with run, _default_dtype(run):
            bases = run.bring(copies)
            outputs = way(self._op, self._call, sample, run, bases, _Grads(self._draw, grads, run, given))
            leaves = read_back(outputs) + read_back(bases, "base")
        return kept(leaves)

    def _judge(self, actual: list[Leaf], truth: list[Leaf], same: list[Leaf], terms: int) -> None:
        if not len(actual) == len(truth) == len(same):
            raise Mismatch(f"{len(actual)} outputs, the CPU gives {len(same)}")
        floor = _FLOOR * max((_widest(one.value) for one in truth), default=0.0)
        for got, want, own in zip(actual, truth, same):
            if isinstance(own.value, torch.Tensor) and isinstance(got.value, torch.Tensor):
                if got.value.dtype != own.value.dtype:
                    raise Mismatch(f"{got.path}: dtype {got.value.dtype}, the CPU gives {own.value.dtype}")
                if got.device != self._bench.device.type:
                    raise Mismatch(f"{got.path}: lies on {got.device}, not on {self._bench.device.type}")
            error = self._error(got, want, own, terms, floor)
            self.worst = max(self.worst, error, key=lambda one: one.max_rel_scaled)

    def _error(self, got: Leaf, want: Leaf, own: Leaf, terms: int, floor: float) -> Error:
        try:
            return compare_leaf(got, want, lambda: own, terms=terms, factor=self._factor, floor=floor)
        except Mismatch as wrong:
            try:
                return compare_leaf(got, own, lambda: own, terms=terms, factor=self._factor, floor=floor)
            except Mismatch:
                raise wrong from None

    def _terms(self, way: Any, sample: Sample) -> int:
        if type(self._op).__name__ in _POINTWISE:
            return 1
        return min(max(sample.elements, 1), _MOST_TERMS.get(self._dtype, sample.elements + 1))

    def _judge_refusal(self, what: str, raised: Exception) -> None:
        if isinstance(raised, NotImplementedError) or _GAP.search(str(raised)):
            self.refusals.append(f"not on this device: {raised}")
            return
        raise Mismatch(f"{what}: raised {type(raised).__name__}: {raised}") from raised

    def _is_random(self, way: Any, sample: Sample, same: list[Leaf], grads: list[Any]) -> bool:
        other = self._run(way, sample, self._bench.same(), grads, seed=self._bench.seed + 1)
        return any(bits_differ(one, two) for one, two in zip(same, other))


class _NotHere(Exception):
    """The CPU does not answer this question, so it is none."""


class _Grads:
    """The gradients of the outputs: drawn on the host by the first run, the same ones brought by the others."""

    def __init__(self, draw: Any, grads: list[Any], run: Any, given: Any) -> None:
        self._draw, self._grads, self._run, self._given = draw, grads, run, given

    def of(self, outputs: list[torch.Tensor]) -> list[torch.Tensor]:
        """Return a gradient for each output, on the run's device."""
        if self._given is None:
            self._grads += [self._draw.of(one.dtype, *one.shape) for one in outputs]
            return list(self._run.bring(self._run.copy(self._grads)))
        return list(self._run.bring(self._given))


def _forward(op: Any, call: Any, sample: Sample, run: Any, bases: list[Any], grads: _Grads) -> Any:
    """Return the outputs, and the gradient of each differentiable input."""
    x, args, kwargs = sample.arguments(run, bases, gradients=True)
    outputs = sample.process(call(x, *args, **kwargs))
    starts = [one for one in tensors_in((x, args, kwargs)) if one.requires_grad and one.is_leaf]
    ends = [one for one in tensors_in(outputs) if one.requires_grad]
    if not starts or not ends:
        return outputs
    found = torch.autograd.grad(ends, starts, grads.of(ends), allow_unused=True)
    return outputs, [one for one in found if one is not None]


def _in_place(op: Any, call: Any, sample: Sample, run: Any, bases: list[Any], grads: _Grads) -> Any:
    """Return what the in-place variant returns; the base shows what it wrote."""
    variant = op.inplace_variant
    if variant is None or sample.broadcasts_input:
        raise _NotHere
    x, args, kwargs = sample.arguments(run, bases, gradients=False)
    return variant(x, *args, **kwargs)


def _into_out(op: Any, call: Any, sample: Sample, run: Any, bases: list[Any], grads: _Grads) -> Any:
    """Return a gapped destination that `out=` wrote to, and what lies between."""
    if not getattr(op, "supports_out", False):
        raise _NotHere
    x, args, kwargs = sample.arguments(run, bases, gradients=False)
    likes = call(x, *args, **kwargs)
    if not isinstance(likes, torch.Tensor):
        raise _NotHere
    if likes.dim() == 0 or "out" in kwargs:
        raise _NotHere
    around = torch.ones((*likes.shape[:-1], 2 * likes.shape[-1] + 1), dtype=likes.dtype, device=likes.device)
    if run.tested:
        call(x, *args, out=around[..., 1::2], **kwargs)
    else:  # the CPU has had destinations that it wrote past (pytorch#84577): there the plain result is copied
        call(x, *args, out=torch.empty_like(likes), **kwargs)
        around[..., 1::2].copy_(likes)
    return around


@contextlib.contextmanager
def _default_dtype(run: Any) -> Iterator[None]:
    """In the reference integers become float64 where they become floating at all."""
    if not run.precise:
        yield
        return
    kept = torch.get_default_dtype()
    torch.set_default_dtype(torch.float64)
    try:
        yield
    finally:
        torch.set_default_dtype(kept)


def _widest(value: Any) -> float:
    """Return the largest finite magnitude of a floating answer."""
    if not isinstance(value, torch.Tensor) or not value.dtype.is_floating_point or value.numel() == 0:
        return 0.0
    finite = value[torch.isfinite(value)].abs()
    return float(finite.max()) if finite.numel() else 0.0


def _late(op: Any) -> Callable[..., Any]:
    """Return a call that looks the public function up each time: a plant may have replaced it since the import."""
    home: Any = torch
    *path, name = op.name.split(".")
    for part in path:
        home = getattr(home, part, None)
    healthy = getattr(home, name, None)
    # Upstream hides that an operator is random: its wrapper seeds the host before each call.
    seeded = "wrapper_set_seed" in getattr(getattr(op.op, "__code__", None), "co_names", ())
    if healthy is None or not (seeded or healthy is op.op):
        return op.op  # type: ignore[no-any-return]
    return lambda *args, **kwargs: getattr(home, name)(*args, **kwargs)
