"""Calls that have no answer: a case passes where the device refuses whatever this torch's CPU refuses."""

from __future__ import annotations

from typing import Any

import torch

from . import Cases
from .answers import says_missing
from .compare import read_back
from .states import Refused

_SINGULAR = torch.linalg.LinAlgError
_A_CALL_WITHOUT_AN_ANSWER = "no call that this torch's CPU refuses"


def a_table(d: Any) -> Any:
    """Return operands from a source of numbers: two matrices whose sizes are exchanged, and places in a row."""
    return d.normal(5, 7), d.normal(7, 5), d.integers(0, 5, 6)


def refusal(form: Any, run: Any, bases: Any) -> Exception | None:
    """Return what a call raises, at once or when its answer is read; None where it answers."""
    copies = run.copy(bases)
    with run:
        try:
            read_back(form(*run.bring(copies)))
        except NameError:  # a mistake in the case itself, no refusal
            raise
        except Exception as raised:
            return raised
    return None


def _asked(forms: dict[str, Any], make: Any, bench: Any) -> None:
    bases = make(bench.draw("refused"))
    undefined = {name: refusal(form, bench.same(), bases) for name, form in forms.items()}
    undefined = {name: raised for name, raised in undefined.items() if raised is not None}
    if not undefined:
        raise Refused(_A_CALL_WITHOUT_AN_ANSWER)
    found = {name: refusal(forms[name], bench.device_run(), bases) for name in undefined}
    bench.synchronise()
    answered = [name for name, raised in found.items() if raised is None]
    assert not answered, f"an answer to what the CPU refuses: {', '.join(answered)}"
    # Programs catch this one by its name, as torch.linalg promises; a gap of the device is none.
    other = [
        f"{name} ({type(raised).__name__})"
        for name, raised in found.items()
        if isinstance(undefined[name], _SINGULAR) and not isinstance(raised, _SINGULAR) and not says_missing(raised)
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
