"""Calls that have no answer: a case passes where the device refuses whatever this torch's CPU refuses."""

from __future__ import annotations

from typing import Any

import torch

from . import Cases
from .compare import read_back
from .states import Refused

_SINGULAR = torch.linalg.LinAlgError
_A_CALL_WITHOUT_AN_ANSWER = "no call that this torch's CPU refuses"


def a_table(d: Any) -> Any:
    """Return operands from a source of numbers: two matrices whose sizes are exchanged, and places in a row."""
    return d.normal(5, 7), d.normal(7, 5), d.integers(0, 5, 6)


def refusal(form: Any, run: Any, bases: Any) -> type[Exception] | None:
    """Return what a call raises, at once or when its answer is read; None where it answers."""
    copies = run.copy(bases)
    with run:
        try:
            read_back(form(*run.bring(copies)))
        except NameError:  # a mistake in the case itself, no refusal
            raise
        except Exception as raised:
            return type(raised)
    return None


def _asked(forms: dict[str, Any], make: Any, bench: Any) -> None:
    bases = make(bench.draw("refused"))
    undefined = {name: refusal(form, bench.same(), bases) for name, form in forms.items()}
    undefined = {name: kind for name, kind in undefined.items() if kind is not None}
    if not undefined:
        raise Refused(_A_CALL_WITHOUT_AN_ANSWER)
    found = {name: refusal(forms[name], bench.device_run(), bases) for name in undefined}
    bench.synchronise()
    answered = [name for name, kind in found.items() if kind is None]
    assert not answered, f"an answer to what the CPU refuses: {', '.join(answered)}"
    # Programs catch this one by its name, as torch.linalg promises; a gap of the device is none.
    other = [
        f"{name} ({kind.__name__})"
        for name, kind in found.items()
        if undefined[name] is _SINGULAR and not issubclass(kind, (_SINGULAR, NotImplementedError))
    ]
    assert not other, f"not the LinAlgError that the CPU raises: {', '.join(other)}"


def add_refused(cases: Cases, name: str, make: Any, forms: dict[str, Any], **fields: Any) -> None:
    """Add one case that asks every form of a table and demands that each is refused.

    Args:
        make: operands from a source of numbers.
        fields: of the case, besides the usual.
    """
    cases.add(
        f"condition-refused-{name}", lambda bench: _asked(forms, make, bench), check=True, may_be_missing=True, **fields
    )
