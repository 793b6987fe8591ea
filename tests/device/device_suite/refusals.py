"""Calls that have no answer: a case passes where the device refuses whatever this torch's CPU refuses."""

from __future__ import annotations

from typing import Any

from . import Cases
from .compare import read_back
from .states import Refused

_A_CALL_WITHOUT_AN_ANSWER = "no call that this torch's CPU refuses"


def a_table(d: Any) -> Any:
    """Return operands from a source of numbers: two matrices whose sizes are exchanged, and places in a row."""
    return d.normal(5, 7), d.normal(7, 5), d.integers(0, 5, 6)


def _refuses(form: Any, run: Any, bases: Any) -> bool:
    """Say whether a call raises, at once or when its answer is read."""
    copies = run.copy(bases)
    with run:
        try:
            read_back(form(*run.bring(copies)))
        except NameError:  # a mistake in the case itself, no refusal
            raise
        except Exception:
            return True
    return False


def _asked(forms: dict[str, Any], make: Any, bench: Any) -> None:
    bases = make(bench.draw("refused"))
    undefined = {name: form for name, form in forms.items() if _refuses(form, bench.same(), bases)}
    if not undefined:
        raise Refused(_A_CALL_WITHOUT_AN_ANSWER)
    answered = [name for name, form in undefined.items() if not _refuses(form, bench.device_run(), bases)]
    bench.synchronise()
    assert not answered, f"an answer to what the CPU refuses: {', '.join(answered)}"


def add_refused(cases: Cases, name: str, make: Any, forms: dict[str, Any], **fields: Any) -> None:
    """Add one case that asks every form of a table and demands that each is refused.

    Args:
        make: operands from a source of numbers.
        fields: of the case, besides the usual.
    """
    cases.add(
        f"condition-refused-{name}", lambda bench: _asked(forms, make, bench), check=True, may_be_missing=True, **fields
    )
