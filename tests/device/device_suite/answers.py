"""Answers that a table of conditions needs: tensors that stay on the host, and combinations that a torch refuses."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Callable

import torch

# How the back ends word a refusal; a missing operator is a gap, not a wrong answer.
REFUSALS = (
    "is not currently implemented for the",
    "does not have support for that dtype",
    "\" not implemented for '",
    "doesn't support float64",
    "not supported on MPS",
    "not implemented for MPS",
    "MPS does not support",
    "BFloat16 is not supported",
    "are not supported with fused",
    "requires all the params to be floating point Tensors of supported devices",
    "must be on supported devices",
    "ComplexFloat is not supported",
    "Unknown device type",
    "autocast device_type",
    "Could not run 'aten::",
    "hx is not contiguous",
)


def says_missing(raised: BaseException) -> bool:
    """Say whether an exception's text is that of an operator or dtype which a back end lacks."""
    return any(text in str(raised) for text in REFUSALS)


@dataclass(frozen=True)
class Absent:
    """Stands for an answer that was refused; `missing`: as a back end words a gap, not as it words a fault."""

    kind: str
    text: str
    missing: bool

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Absent)

    def __hash__(self) -> int:
        return 0


def attempt(act: Callable[[], Any], *, gap: str = "") -> Any:
    """Return one answer, or Absent where this combination is refused: the rest of a table is asked all the same.

    `gap`: a text of a refusal that is the device's right here.
    """
    try:
        return act()
    except NameError:  # a mistake in the case itself, no refusal
        raise
    except Exception as raised:
        may = says_missing(raised) or (gap != "" and gap in str(raised))
        return Absent(type(raised).__name__, str(raised)[:300], may)


class Host:
    """A tensor, or a view of one, that the frame leaves on the host, in its own dtype and layout.

    It is compared after the act like a base: an act that writes to its source is noticed.
    """

    def __init__(self, base: torch.Tensor, cut: Callable[[torch.Tensor], torch.Tensor] = lambda base: base) -> None:
        self.base = base
        self._before = base.clone()
        self.view = cut(base)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Host) and self.intact and other.intact and _same(self.base, other.base)

    def __hash__(self) -> int:
        return 0

    @property
    def intact(self) -> bool:
        """Say whether the storage still holds what was drawn."""
        return _same(self.base, self._before)

    def __repr__(self) -> str:
        return f"Host({tuple(self.view.shape)}, {self.view.dtype}, {'intact' if self.intact else 'overwritten'})"


def _same(one: torch.Tensor, two: torch.Tensor) -> bool:
    return torch.equal(_bits(one), _bits(two))


def _bits(x: torch.Tensor) -> torch.Tensor:
    """Return the bytes: NaN equals NaN there, and -0 is not 0."""
    return torch.view_as_real(x).view(torch.int32) if x.is_complex() else x.contiguous().view(torch.uint8)
