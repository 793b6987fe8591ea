"""What a transformation is: what it changes of a drawn call, what it does on a run, and what it compares."""

from __future__ import annotations

from contextlib import nullcontext
from dataclasses import dataclass
from functools import partial
from typing import Any, ContextManager, Tuple

import torch

from . import calls, comparison, reference
from .description import Operator, Row
from .drawing import Context
from .reference import Truth

Factor = Tuple[str, Tuple[Any, ...]]


@dataclass(frozen=True)
class Call:
    """One drawn call: an operator, and a level for each factor of it and of its transformation."""

    operator: Operator
    row: Row

    @property
    def levels(self) -> dict[str, Any]:
        """Return the levels by factor."""
        return self.row.levels

    def changed(self, **levels: Any) -> Call:
        """Return the call with other levels; `form="out"` stands for the factor `@form`."""
        row = Row(self.row.digits, self.row.number, {**self.levels, **{f"@{key}": one for key, one in levels.items()}})
        return Call(self.operator, row)

    def with_level(self, factor: str, level: Any) -> Call:
        """Return the call with another level of one factor."""
        return Call(self.operator, Row(self.row.digits, self.row.number, {**self.levels, factor: level}))

    def numbered(self, number: int) -> Call:
        """Return the call with other data: a row's number says where its values begin."""
        return Call(self.operator, Row(self.row.digits, number, self.levels))

    def bases(self, run: Any) -> list[Any]:
        """Return what travels for each operand, on the host, in the dtypes of a run."""
        return Context(self.operator, self.row, precise=run.precise).bases()

    def places(self, truth: Truth | None) -> list[Any]:
        """Return what travels for out=, or for the gradients of the answers, where the reference gave their forms."""
        if truth is None or not truth.forms:
            return []
        context = Context(self.operator, self.row)
        context.bases()  # each draw begins at another place: what out= held is what the reference's out= held
        return context.places(truth.forms)

    def perform(self, run: Any, bases: list[Any], places: list[Any] | None = None) -> list[Any]:
        """Return what the operator answers on a run, given its bases on the host."""
        return calls.perform(self.operator, self.row, run, bases, places or [])


class Transformation:
    """One way to use an operator. A file of `transforms/` holds one, as `transformation` or in `transformations`.

    Attributes:
        name: the middle of a case's id.
        forms: which forms of an operator it takes: call, inplace, out, grad.
        focus: the factors of which it takes any level but the first, by the beginnings of their names.
        graphs: how many new graphs a case compiles: the mean of a default run's cases on torch 2.13.0
            (`python tests/sensitivity/core_keys.py` prints all).
        share: how often it is drawn beside the others.
        varied: a case makes its call in other ways too that need no other graph (`trial.variants`).
        free: the factors of its own that need no other graph. beside: the forms in which its call is made too.
        relayout: those calls have other layouts.
        within: the public context manager in which a device calls it, as a script writes it: `torch.inference_mode()`.
            `{name}` is the call's level of the factor `@name`, `device` the type of the device, `cast` True.
    """

    name = ""
    forms: tuple[str, ...] = ("call",)
    focus: tuple[str, ...] = ()
    graphs = 1.3
    share = 1.0
    varied = relayout = True
    free: tuple[str, ...] = ()
    beside: tuple[str, ...] = ()
    within = ""

    def applies(self, operator: Operator) -> bool:
        """Say whether an operator can be used so."""
        return (
            self.name not in operator.without
            and bool(self.forms_of(operator))
            and all(
                any(name.startswith(start) and len(levels) > 1 for name, levels in operator.factors)
                for start in self.focus
            )
        )

    def forms_of(self, operator: Operator) -> tuple[str, ...]:
        """Return the forms that both have."""
        return tuple(form for form in self.forms if form in operator.forms)

    def factors(self, operator: Operator) -> list[Factor]:
        """Return what it adds to the operator's factors: names that begin with @, and levels."""
        return []

    def perform(self, call: Call, run: Any, truth: Truth | None) -> list[Any]:
        """Return what is compared. `truth` is None while the reference itself is computed."""
        bases, places = call.bases(run), call.places(truth)
        with self.entered(call, run):
            return call.perform(run, bases, places)

    def around(self, call: Call) -> str:
        """Return `within` for a call, an empty text where there is none."""
        return self.within.format(**{name.lstrip("@"): level for name, level in call.levels.items()})

    def entered(self, call: Call, run: Any) -> ContextManager[Any]:
        """Return the context in which a call is made: on the reference's run none."""
        if not self.within or run.precise:
            return nullcontext()
        context: ContextManager[Any] = eval(
            self.around(call), {"torch": torch, "device": run.device.type, "cast": True}
        )
        return context

    def truth(self, call: Call, bench: Any) -> Truth:
        """Return the reference's answers; raise what the CPU raises."""
        found = self.reference(call, bench.reference())
        found.ask_own = partial(self.own, call, bench, found)
        return found

    def reference(self, call: Call, run: Any) -> Truth:
        """Return what float64 on the CPU answers."""
        return Truth(self.perform(call, run, None), [])

    def own(self, call: Call, bench: Any, truth: Truth) -> list[Any]:
        """Return what the CPU answers in the call's own dtypes."""
        run = bench.same()
        run.seed(bench.seed)
        return self.perform(call, run, truth)

    def dtypes(self, call: Call, bench: Any, truth: Truth, results: list[Any]) -> list[Any]:
        """Return the dtypes that a script demands of the results; called for calls under autocast alone."""
        return [one.dtype for one in results if hasattr(one, "dtype")]

    def chosen_from(self, call: Call, run: Any) -> list[Any]:
        """Return the operands, on the host, among whose elements an operator chooses: at ties it may choose another."""
        return [calls.cut(call.bases(run)[0])]

    def judge(self, call: Call, bench: Any, truth: Truth, answer: Any) -> Any:
        """Return the error of an answer, which may be an exception; raise Mismatch or Gap."""
        return comparison.judge(call.operator, call.row, bench, truth, answer)


class Formed(Transformation):
    """A transformation of a plain call, of one in place, with out=, or derived: only the drawing differs."""

    def __init__(self, name: str, *, forms: tuple[str, ...] = ("call",), focus: tuple[str, ...] = (), **fields: Any):
        self.name, self.forms, self.focus = name, forms, focus
        self.beside = ("call", "inplace", "out") if forms == ("call",) else ()
        for key, value in fields.items():
            setattr(self, key, value)

    def reference(self, call: Call, run: Any) -> Truth:
        """Return what float64 on the CPU answers."""
        return reference.reference(call.operator, call.row, run)
