"""Runs one case in its states and judges it: the reference outside the injected fault, everything else inside a run."""

from __future__ import annotations

import warnings
from functools import partial
from typing import Callable

import torch

from .answers import Absent, says_missing
from .cases import Case
from .compare import Error, Leaf, Mismatch, bits_differ, compare_leaves, kept, read_back
from .forms import Own, check_form, narrowed, spread
from .runs import Bench, DeviceRun
from .versions import refuse_such_warnings

# What a state draws: (k, data). `polluted` draws new values at the first shape, so that an answer kept
# from an earlier call cannot pass.
_DRAWS = {"fresh": (0, 0), "again": (0, 0), "other": (1, 0), "polluted": (0, 1)}


class Refused(Exception):
    """The case cannot be run here; the reason says why."""


_KEPT_ELEMENTS = 300_000


class References:
    """Answers of the CPU, kept: by (case, draw); the harness asks the same case hundreds of times.

    Large ones are kept for the last case only, or a run of the whole suite would fill the memory.
    """

    def __init__(self, *, keep: bool = False) -> None:
        self._keep = keep
        self._known: dict[tuple[str, tuple[int, int], bool], list[Leaf]] = {}
        self._large: dict[tuple[str, tuple[int, int], bool], list[Leaf]] = {}

    def get(self, case: Case, bench: Bench, draw: tuple[int, int], *, precise: bool) -> list[Leaf]:
        """Return the leaves of the float64 reference, or of the CPU in the case's own dtypes."""
        key = (case.id, draw, precise)
        found = self._known.get(key) or self._large.get(key)
        if found is not None:
            return found
        run = bench.reference() if precise else bench.same()
        leaves = answers_of(case, bench, run, draw)
        if (
            self._keep
            and sum(leaf.value.numel() for leaf in leaves if isinstance(leaf.value, torch.Tensor)) < _KEPT_ELEMENTS
        ):
            self._known[key] = leaves
        else:
            self._large = {old: found for old, found in self._large.items() if old[0] == case.id}
            self._large[key] = leaves
        return leaves


def answers_of(case: Case, bench: Bench, run: DeviceRun, draw: tuple[int, int]) -> list[Leaf]:
    """Return what the case answers on this run: its outputs, then its bases as the act left them."""
    bases = bench.bases(case, draw)
    copies = run.copy(bases)
    run.seed(bench.seed)
    with run:
        brought = run.bring(copies)
        outputs = case.act(run, *brought) if case.wants_run else case.act(*brought)
        leaves = read_back(outputs)
        left = read_back(brought, "base")
    return kept(leaves) + left  # the bases are this run's own


def run_case(case: Case, bench: Bench, references: References | None = None) -> Error:
    """Return the largest error of the case over its states; raise Mismatch, Refused, or what the act raised."""
    with warnings.catch_warnings():
        if bench.device.type == "mps":
            refuse_such_warnings()
        return _in_all_states(case, bench, references)


def _in_all_states(case: Case, bench: Bench, references: References | None) -> Error:
    if case.check:
        return _checked(case, bench)
    known = references or References(keep=True)
    worst = Error()
    first: list[Leaf] = []
    for state in case.states:
        draw = _DRAWS[state]
        reference = _refuse_without(case, partial(known.get, case, bench, draw, precise=True))
        if state == "polluted":
            bench.pollute(_sizes(reference))
        try:
            actual = answers_of(case, bench, bench.device_run(), draw)
        except Exception as raised:
            _check_refusal(case, bench, draw, raised)
            raise Mismatch(f"{state}: raised {type(raised).__name__}: {raised}") from raised
        if state == "again" and _repeats(first, actual):
            continue  # the very answer that was judged
        try:
            worst = max(
                worst, _judge(case, bench, actual, reference, known, draw), key=lambda error: error.max_rel_scaled
            )
            if state == "again" and case.deterministic:
                _demand_same_bits(case, bench, first, actual)
        except Mismatch as wrong:
            raise Mismatch(f"{state}: {wrong}", wrong.error) from None
        first = first or actual
    return worst


def _checked(case: Case, bench: Bench) -> Error:
    try:
        found = case.act(bench)
    except Exception as raised:
        if says_missing(raised):
            if case.may_be_missing and bench.device.type != "cpu":
                raise Refused(f"not on this device: {raised}") from raised
            _check_cpu_has(case, bench)
        raise
    return found if isinstance(found, Error) else Error()


def _check_cpu_has(case: Case, bench: Bench) -> None:
    """Raise Refused where this torch's CPU lacks what a check asks of it: nothing is known to be right then."""
    if case.devices and "cpu" not in case.devices:
        return
    try:
        case.act(Bench(torch.device("cpu"), seed=bench.seed))
    except Exception as own:
        if says_missing(own):
            raise Refused(f"no reference: this torch's CPU raises {type(own).__name__}: {own}") from own


def _judge(
    case: Case, bench: Bench, actual: list[Leaf], reference: list[Leaf], known: References, draw: tuple[int, int]
) -> Error:
    actual, reference = spread(actual, reference), spread(reference, actual)
    if len(actual) != len(reference):
        odd = sorted({leaf.path for leaf in actual} ^ {leaf.path for leaf in reference})
        raise Mismatch(f"{len(actual)} outputs, the reference has {len(reference)}; not in both: {', '.join(odd[:5])}")
    own = Own(case, bench, partial(known.get, case, bench, precise=False), draw, reference)
    pairs = []
    for got, want in zip(actual, reference):
        if isinstance(want.value, Absent):
            continue  # the CPU refuses this combination: nothing is defined
        if isinstance(got.value, Absent):
            _check_absence(got, own.answer(want.path), bench)
            continue
        check_form(case, bench, got, want, own)
        pairs.append((got, want) if case.autocast is None else _under_autocast(case, own, got, want))
    _demand_answers(actual, reference)  # first: what was not done has not written to its operands either
    return compare_leaves(
        pairs, partial(_own_answer, case, own), terms=case.terms, factor=case.factor, floor=case.floor
    )


def _under_autocast(case: Case, own: Own, got: Leaf, want: Leaf) -> tuple[Leaf, Leaf]:
    """Return an answer and what it is compared with; a text names a dtype, which the device's lists give."""
    named = (own.form(want.path) or got) if isinstance(want.value, str) else want
    return narrowed(got, case.autocast), named


def _own_answer(case: Case, own: Own, path: str) -> Leaf | None:
    found = own.answer(path)
    return found if found is None or case.autocast is None else narrowed(found, case.autocast)


def _demand_answers(actual: list[Leaf], reference: list[Leaf]) -> None:
    """Raise Refused where a table of conditions got no answer at all: nothing was tested."""
    for leaves, where in ((reference, "on the CPU"), (actual, "on this device")):
        outputs = [leaf for leaf in leaves if not leaf.path.startswith("base")]
        refused = [leaf.value for leaf in outputs if isinstance(leaf.value, Absent)]
        if refused and len(refused) == len(outputs):
            raise Refused(f"not {where}: {refused[0].text}")


def _check_absence(got: Leaf, like: Leaf | None, bench: Bench) -> None:
    """Raise Mismatch where the device refuses what it has; a gap, and what the rehearsal's own CPU lacks, may be."""
    if like is not None and isinstance(like.value, Absent):
        return
    if not got.value.missing or bench.device.type == "cpu":
        raise Mismatch(f"{got.path}: raised {got.value.kind}: {got.value.text}")


def _demand_same_bits(case: Case, bench: Bench, first: list[Leaf], second: list[Leaf]) -> None:
    path = _first_difference(first, second)
    if path is None:
        return
    if bench.device.type == "cpu":  # old CPU builds vary with the alignment of the memory: no news about a device
        bare = [answers_of(case, bench, bench.same(), _DRAWS["again"]) for _ in range(4)]
        if any(_first_difference(bare[0], other) is not None for other in bare[1:]):
            return
    raise Mismatch(f"{path}: two equal calls gave different answers")


def _repeats(first: list[Leaf], second: list[Leaf]) -> bool:
    return len(first) == len(second) and all(
        one[0] == two[0]
        and one[2:] == two[2:]
        and not (isinstance(one.value, Absent) or isinstance(two.value, Absent))
        and not bits_differ(one, two)
        for one, two in zip(first, second)
    )


def _first_difference(first: list[Leaf], second: list[Leaf]) -> str | None:
    return next((one.path for one, two in zip(first, second) if bits_differ(one, two)), None)


def _refuse_without(case: Case, get: Callable[[], list[Leaf]]) -> list[Leaf]:
    try:
        return get()
    except NameError:  # a mistake in the case itself, no refusal
        raise
    except Exception as raised:
        if _is_mistake(raised):
            raise
        raise Refused(f"no reference: the CPU raised {type(raised).__name__}: {raised}") from raised


def _is_mistake(raised: Exception) -> bool:
    """Say whether a case asks the suite for what it has not: no torch lacks that. Python tells of what since 3.10."""
    return isinstance(raised, AttributeError) and type(getattr(raised, "obj", None)).__module__.startswith(__package__)


def _check_refusal(case: Case, bench: Bench, draw: tuple[int, int], raised: Exception) -> None:
    """Raise Refused where the device may decline: the rehearsal's CPU lacks it too, or the operator is missing."""
    if bench.device.type == "cpu":
        try:
            answers_of(case, bench, bench.same(), draw)
        except Exception as own:
            raise Refused(f"this torch's CPU raises {type(own).__name__}: {own}") from raised
    elif case.may_be_missing and says_missing(raised):
        raise Refused(f"not on this device: {raised}") from raised


def _sizes(reference: list[Leaf]) -> list[int]:
    counts = {leaf.value.numel() for leaf in reference if isinstance(leaf.value, torch.Tensor)}
    return sorted(count for count in counts if 0 < count < 1 << 16)
