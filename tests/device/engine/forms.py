"""What is demanded of a result besides its values: dtype, shape, memory; under autocast too."""

from __future__ import annotations

import warnings
from typing import Any, Callable

import torch

from .answers import Absent
from .cases import Case
from .compare import Leaf, Mismatch, read_back
from .draws import leaves_of, map_tensors
from .runs import Bench, DeviceRun

_RAISED = {torch.float64: torch.float32, torch.complex128: torch.complex64}
_FRESH = (0, 0)


class Own:
    """The CPU's answers in the case's own dtypes, by path; None where the CPU refuses.

    Args:
        ask: gives the CPU's leaves for a draw.
        draw: that of the state which is judged.
        reference: the leaves of float64 for it.
    """

    def __init__(
        self,
        case: Case,
        bench: Bench,
        ask: Callable[[tuple[int, int]], list[Leaf]],
        draw: tuple[int, int],
        reference: list[Leaf],
    ) -> None:
        self._ask, self._draw, self._reference, self._strides = ask, draw, reference, case.strides
        self._policy = by_policy(case, bench, draw)
        self._narrow = not case.wants_run and _is_single(bench.bases(case, draw))
        self._found: dict[tuple[int, int], dict[str, Leaf]] = {}

    def answer(self, path: str) -> Leaf | None:
        """Return what the CPU answers there to the same draw."""
        return self._at(self._draw).get(path)

    def form(self, path: str) -> Leaf | None:
        """Return an answer of the same dtype: one to the first draw will do, unless another shape's strides count.

        Under autocast it is what the device's own lists give, None where they are not known.
        """
        if self._policy is not None and not path.startswith("base"):
            return self._policy.get(path)
        if self._draw[0] and self._strides:
            return self.answer(path)
        return self._at(_FRESH).get(path) or self.answer(path)

    @property
    def whose(self) -> str:
        """Return who gives that dtype."""
        return "the CPU gives" if self._policy is None else "autocast's lists for the device give"

    def given_by(self, reference: torch.Tensor) -> torch.dtype | None:
        """Return the dtype of an answer where float64's answer tells it, so that the CPU need not compute it again.

        A dtype that is not float64 was not raised; and float64 came of float32 where nothing else was drawn.
        """
        raised = _RAISED.get(reference.dtype)
        return reference.dtype if raised is None else raised if self._narrow else None

    def _at(self, draw: tuple[int, int]) -> dict[str, Leaf]:
        if draw not in self._found:
            try:
                leaves = spread(self._ask(draw), self._reference)
            except Exception:  # an old CPU build lacks half precision for this operator: no second opinion, no matter
                leaves = []
            self._found[draw] = {leaf.path: leaf for leaf in leaves}
        return self._found[draw]


def check_form(case: Case, bench: Bench, got: Leaf, want: Leaf, own: Own) -> None:
    """Raise Mismatch where the dtype, the device or a stride that counts is another than the CPU's."""
    if not isinstance(want.value, torch.Tensor) or not isinstance(got.value, torch.Tensor):
        return
    placed = want  # a base lies as it was drawn, whatever its dtype
    if case.strides or got.value.dtype != own.given_by(want.value):
        like = own.form(want.path)
        if like is None or not isinstance(like.value, torch.Tensor):
            return
        if got.value.dtype != like.value.dtype:
            raise Mismatch(f"{got.path}: dtype {got.value.dtype}, {own.whose} {like.value.dtype}")
        placed = like if case.strides else want
    if not case.anywhere and got.device != bench.device.type:
        raise Mismatch(f"{got.path}: lies on {got.device}, not on {bench.device.type}")
    if (case.strides or got.path.startswith("base")) and got.stride != placed.stride:
        raise Mismatch(f"{got.path}: strides {got.stride}, the CPU gives {placed.stride}")


def spread(leaves: list[Leaf], others: list[Leaf]) -> list[Leaf]:
    """Return the leaves, each refusal of several answers once for each of them: a refusal has one leaf, a list many."""
    if not any(isinstance(leaf.value, Absent) for leaf in leaves):
        return leaves
    found: list[Leaf] = []
    for leaf in leaves:
        below = (f"{leaf.path}[", f"{leaf.path}.")
        paths = [one.path for one in others if one.path.startswith(below)] if isinstance(leaf.value, Absent) else []
        found += [Leaf(path, leaf.value) for path in paths] or [leaf]
    return found


def _is_single(bases: Any) -> bool:
    """Say whether everything drawn with a fraction is float32 or complex64."""
    plain = (torch.dtype, bool, int, float, complex, str, type(None))
    return all(
        one.dtype in _RAISED.values() or not (one.is_floating_point() or one.is_complex())
        if isinstance(one, torch.Tensor)
        else isinstance(one, plain)
        for one in leaves_of(bases)
    )


def by_policy(case: Case, bench: Bench, draw: tuple[int, int]) -> dict[str, Leaf] | None:
    """Return what the case answers of fake tensors on the device under test, by path: dtypes and texts count.

    What a back end cannot do with them is not among the answers. None without autocast, and on the CPU, whose own
    answers show its lists.
    """
    return None if case.autocast is None or bench.device.type == "cpu" else fake_answers(case, bench, draw)


def fake_answers(case: Case, bench: Bench, draw: tuple[int, int]) -> dict[str, Leaf]:
    """Return what the case answers of fake tensors, by path."""
    bases = bench.bases(case, draw)
    run = DeviceRun(bench.device)
    try:
        from torch._subclasses.fake_tensor import FakeTensorMode

        with warnings.catch_warnings(), FakeTensorMode(), bench.device:  # modules too are made there
            warnings.simplefilter("ignore")
            brought = map_tensors(bases, lambda base: _fake(base, bench.device))
            leaves = read_back(case.act(run, *brought))
    except Exception:  # a private module, and a back end's own limits
        return {}
    return {leaf.path: leaf for leaf in leaves if isinstance(leaf.value, (torch.Tensor, str))}


def narrowed(leaf: Leaf, low: Any) -> Leaf:
    """Return an answer in autocast's dtype if it is broader: what it was computed of has been rounded to that."""
    value = leaf.value
    if leaf.path.startswith("base") or not isinstance(value, torch.Tensor) or not value.dtype.is_floating_point:
        return leaf
    is_broader = torch.finfo(value.dtype).eps < torch.finfo(low).eps
    return leaf._replace(value=value.to(low)) if is_broader else leaf


def _fake(base: torch.Tensor, device: torch.device) -> torch.Tensor:
    return torch.empty_strided(base.shape, base.stride(), dtype=base.dtype, device=device)
