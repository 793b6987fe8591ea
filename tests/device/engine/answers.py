"""Answers that a table of conditions needs: tensors that stay on the host, and combinations that a torch refuses."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any, Callable

import torch

from .versions import asks_for_this_macos

# How the back ends word that they lack something: a missing operator, dtype or library is a gap, not a wrong answer.
_GAP = re.compile(
    r"not (yet |currently )?(been )?(implemented|supported)|unsupported|n't support|not (have )?support"
    r"|\bonly .*(supported|implemented)|only supports?\b|supports? (\w+ )?only|\bMPS\b.* supports\b"
    r"|support (is )?(only|missing)|to be on cpu|must be on supported devices|of supported devices|Undefined type"
    r"|requires? .* (library|magma|cusolver|compil)|Failed to create function state object|Unknown device type"
    r"|autocast device_type|should not be called|Could not run 'aten::|hx is not contiguous",
    re.IGNORECASE,
)


def says_missing(raised: BaseException) -> bool:
    """Say whether a back end raised because it lacks something: an operator, a dtype, a library, a newer macOS.

    >>> says_missing(RuntimeError("linalg.cholesky: MPS supports float32 and complex64, but got Half"))
    True
    >>> says_missing(RuntimeError("slow_conv2d_forward_mps should not be called for both tensors on MPS device"))
    True
    >>> says_missing(RuntimeError("The size of tensor a (3) must match the size of tensor b (4)"))
    False
    """
    if asks_for_this_macos(str(raised)):
        return False
    return isinstance(raised, NotImplementedError) or _GAP.search(str(raised)) is not None


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
    """Return one answer, or Absent where this combination is refused: the rest of a table is computed all the same.

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


ONCE = ("fresh",)


def each(forms: dict[str, Any], *operands: Any) -> Any:
    """Return what each form answers, or the kind of its refusal."""
    return {name: attempt(lambda form=form: form(*operands)) for name, form in forms.items()}
