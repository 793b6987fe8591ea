"""The layout cases that follow from an operator: inputs, in-place, out= and gradients, each in every layout."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Callable, Iterator

import torch

from .acts import leaf
from .cases import STATES, Cases
from .draws import Draw
from .layouts import LAYOUTS, Layout
from .ops import Op

# Sizes by letter; each grows by one in another shape. Odd and unequal, so that a swapped stride cannot hide.
SIZES = {"b": 2, "c": 3, "h": 6, "w": 5, "r": 5, "n": 7, "m": 4, "s": 9}
TALL_ROWS = 65543  # past 2**16: indices that wrap
STRIDED = ("transposed", "offset", "step2", "expanded")
# Half precision and integers run the same index arithmetic: two layouts are enough.
FEW = ("transposed", "offset")
KINDS: dict[str, Callable[..., Any]] = {}


def add_layout_cases(cases: Cases, *ops: Op) -> None:
    """Register the cases of some operators: one for each kind, and one more for each further dtype."""
    for op in ops:
        main = op.dtypes[0]
        for kind in _kinds_of(op, main):
            _add(cases, op, kind, main, _families(op, kind), "")
            if kind == "input" and (op.pointwise or op.tall):
                _add(cases, op, kind, main, [_Family("tall", ())], "-tall")
            for dtype in op.dtypes[1:]:
                if kind in ("input", "grad" if dtype.is_floating_point else "inplace"):
                    _add(cases, op, kind, dtype, [_Family("main", FEW)], "-" + str(dtype)[6:])


def _kinds_of(op: Op, dtype: torch.dtype) -> list[str]:
    found = ["input"]
    found += ["inplace"] if op.inplace is not None else []
    found += ["out"] if op.out is not None else []
    return found + (["grad"] if op.grads != () and dtype.is_floating_point else [])


@dataclass(frozen=True)
class _Family:
    """Layouts of one shape; each family's plain operands are asked too."""

    name: str
    layouts: tuple[str, ...]


def _families(op: Op, kind: str) -> list[_Family]:
    images = any(len(arg.shape.split()) >= 4 for arg in op.args)
    # An expanded view has ties, and the order of equal values is open.
    expanded = op.expanded and kind in ("input", "grad") and all(arg.draw != "distinct" for arg in op.args)
    strided = STRIDED if expanded else STRIDED[:-1]
    found = [_Family("main", (*strided, "channels_last") if images else strided)]
    if op.pointwise:
        found += [_Family("image", ("channels_last",)), _Family("scalar", ("offset",))]
    return found + ([_Family("empty", ("offset",))] if op.empty else [])


def _add(cases: Cases, op: Op, kind: str, dtype: torch.dtype, families: list[_Family], suffix: str) -> None:
    plans = [_Plan(op, kind, dtype, family) for family in families]
    act = KINDS[kind]
    whole = kind == "input" and suffix == ""
    cases.add(
        f"layout-{op.name}-{kind}{suffix}",
        lambda *given: {plan.family.name: act(plan, *bases) for plan, bases in zip(plans, given)},
        make=lambda d: tuple(plan.draw(d) for plan in plans),
        terms=op.terms * (TALL_ROWS if suffix == "-tall" and not op.pointwise else 1),
        factor=op.factor,
        floor=0.25 if dtype == torch.float32 else 0.0,
        since=op.since,
        deterministic=op.deterministic,
        may_be_missing=True,
        anywhere=op.anywhere,
        devices=op.devices,
        strides=kind in ("inplace", "out"),
        # Coarse caches and differing calls show in the plain case; elsewhere two calls with other values do, and in a
        # further dtype, which the same code asks for, one.
        states=STATES if whole else ("fresh", "polluted") if dtype == op.dtypes[0] else ("polluted",),
    )


class _Plan:
    """One operator, kind, dtype and family of layouts: the shapes, the bases, the views."""

    def __init__(self, op: Op, kind: str, dtype: torch.dtype, family: _Family) -> None:
        self.op = op
        self.kind = kind
        self.dtype = dtype
        self.family = family
        self._shapes: dict[int, list[tuple[int, ...]]] = {}
        self._outputs: dict[int, list[tuple[tuple[int, ...], torch.dtype]]] = {}

    def draw(self, d: Draw) -> Any:
        """Return the plain operands, the bases for each layout, and the same for what the operator puts out."""
        args, shapes = self.op.args, self._shapes_for(d.k)
        plain = [arg.make(d, self.dtype, shape) for arg, shape in zip(args, shapes)]
        bases = {
            name: [
                None if arg.fixed else arg.make(d, self.dtype, LAYOUTS[name].base(shape))
                for arg, shape in zip(args, shapes)
            ]
            for name in self.family.layouts
        }
        if self.kind not in ("out", "grad"):
            return plain, bases, [], {}
        forms = self._output_forms(d.k, plain)
        outputs = [d.of(dtype, *shape) for shape, dtype in forms]
        layouts = self.family.layouts
        more = {name: [d.of(dtype, *LAYOUTS[name].base(shape)) for shape, dtype in forms] for name in layouts}
        return plain, bases, outputs, more

    def _shapes_for(self, k: int) -> list[tuple[int, ...]]:
        if k not in self._shapes:
            self._shapes[k] = [self._shape(arg.shape, k) for arg in self.op.args]
        return self._shapes[k]

    def _shape(self, letters: str, k: int) -> tuple[int, ...]:
        family = self.family.name
        if family == "scalar":
            return ()
        if family == "image":
            letters = {"r n": "b c h w", "n": "w", "r 1": "b c h 1"}[letters]
        sizes = {letter: size + k for letter, size in SIZES.items()}
        if family == "empty":
            sizes[self.op.empty] = 0
        if family == "tall":
            sizes.update(r=TALL_ROWS + k, n=2)
        return tuple(int(one) if one.isdigit() else sizes[one] for one in letters.split())

    def _output_forms(self, k: int, plain: list[torch.Tensor]) -> Any:
        if k not in self._outputs:  # asked in float32: old CPU builds lack half precision here and there
            wide = [one.float() if one.dtype in (torch.float16, torch.bfloat16) else one for one in plain]
            outputs = tensors_of(self.op.forms[0](*wide))
            self._outputs[k] = [(tuple(o.shape), self.dtype if o.is_floating_point() else o.dtype) for o in outputs]
        return self._outputs[k]


def tensors_of(outputs: Any) -> list[torch.Tensor]:
    """Return the tensors in nested tuples and lists."""
    if isinstance(outputs, torch.Tensor):
        return [outputs]
    return [one for item in outputs for one in tensors_of(item)] if isinstance(outputs, (tuple, list)) else []


def _views(layout: Layout, plain: list[torch.Tensor], bases: list[Any]) -> list[torch.Tensor]:
    pairs = zip(plain, bases)
    return [like if base is None else layout.cut(base, tuple(like.shape)) for like, base in pairs]


def _mixes(plain: list[torch.Tensor], views: list[torch.Tensor]) -> Iterator[list[torch.Tensor]]:
    """Yield the operands with each one in the layout alone, then with all of them."""
    if len(plain) > 1:
        for index, view in enumerate(views):
            if view is plain[index]:
                continue
            yield [*plain[:index], view, *plain[index + 1 :]]
    yield views


def _inputs(plan: _Plan, plain: Any, bases: Any, *_: Any) -> Any:
    forms = plan.op.forms
    answers: dict[str, Any] = {"contiguous": [form(*plain) for form in forms]}
    turn = 0
    for name, given in bases.items():
        answers[name] = []
        for operands in _mixes(plain, _views(LAYOUTS[name], plain, given)):
            answers[name].append(forms[turn % len(forms)](*operands))
            turn += 1
    return answers


def _in_place(plan: _Plan, plain: Any, bases: Any, *_: Any) -> Any:
    write: Any = plan.op.inplace
    answers: dict[str, Any] = {}
    for name, given in bases.items():
        layout = LAYOUTS[name]
        others = _views(layout, plain, given)[1:]
        if others:  # a plain destination, strided sources
            target = plain[0].clone()
            answers[name + " sources"] = write(target, *others), target
            fresh = given[0].clone()
            answers[name + " destination"] = write(layout.cut(fresh, tuple(plain[0].shape)), *plain[1:]), fresh
        answers[name] = write(layout.cut(given[0], tuple(plain[0].shape)), *others)
    answers["contiguous"] = write(plain[0], *plain[1:])
    return answers


def _into_out(plan: _Plan, plain: Any, bases: Any, outputs: Any, more: Any) -> Any:
    write: Any = plan.op.out
    answers: dict[str, Any] = {"contiguous": write(*plain, out=_one_or_all(outputs))}
    for name, given in bases.items():
        layout = LAYOUTS[name]
        shapes = [tuple(output.shape) for output in outputs]
        fresh = [base.clone() for base in more[name]]
        write(*plain, out=_one_or_all([layout.cut(base, shape) for base, shape in zip(fresh, shapes)]))
        views = [layout.cut(base, shape) for base, shape in zip(more[name], shapes)]
        write(*_views(layout, plain, given), out=_one_or_all(views))
        answers[name] = fresh, views
    return answers


def _one_or_all(outputs: list[torch.Tensor]) -> Any:
    return tuple(outputs) if len(outputs) > 1 else outputs[0]


def _gradients(plan: _Plan, plain: Any, bases: Any, outputs: Any, more: Any) -> Any:
    answers: dict[str, Any] = {"contiguous": _derive(plan, plain, outputs)}
    for name, given in bases.items():
        views, grads = _views(LAYOUTS[name], plain, given), _views(LAYOUTS[name], outputs, more[name])
        answers[name] = [_derive(plan, views, outputs), _derive(plan, plain, grads)]
        if plan.family.name == "main" and plan.dtype == plan.op.dtypes[0]:  # elsewhere each of the two alone
            answers[name].append(_derive(plan, views, grads))
    return answers


def _derive(plan: _Plan, operands: list[torch.Tensor], grads: list[torch.Tensor]) -> Any:
    wanted = plan.op.grads
    starts = [
        leaf(one) if one.is_floating_point() and (wanted is None or index in wanted) else one
        for index, one in enumerate(operands)
    ]
    results = tensors_of(plan.op.forms[0](*starts))
    pairs = [(result, grad) for result, grad in zip(results, grads) if result.requires_grad]
    torch.autograd.backward([result for result, _ in pairs], [grad for _, grad in pairs])
    return results, [start.grad for start in starts if start.requires_grad]


KINDS.update(input=_inputs, inplace=_in_place, out=_into_out, grad=_gradients)
