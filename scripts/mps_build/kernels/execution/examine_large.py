"""One kernel on tensors past 2**31 and 2**32: candidates from its code, proved or cleared by running it there.

A contract's own small case becomes a large launch (moves.py), over buffers of which only the touched pages exist. The
results must be those of the small case. Only launches that torch makes are tested: a family's rule says which guards
its host code asks, and the wheel's own host code whether it asks them (large_host.py).
"""

from __future__ import annotations

import hashlib
import itertools
import json
from collections.abc import Collection, Sequence
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any

from ...common.files import write_whole
from ..families.shared.contracts import Case, Kernel
from ..families.shared.large import rule_of
from ..machine.runner import Runner
from ..machine.shift import Moved, Shift
from ..machine.sparse import largest_size
from ..program.launch import NotBound, WrongBinding
from ..read.host_code import HostCode
from .closed import Addressing
from .examine import Outcome, Verdict
from .large_host import NOTHING, Host, host_of
from .large_launch import call_of, is_made, named, numbers_of, strides_text, tensors_of
from .moves import Move, Ways, moves_of

LIMITS = ((1 << 31, "2**31"), (1 << 32, "2**32"))
# Why a kernel is a candidate, the most telling first.
RANKS = (
    "fails, and it is not known whether torch launches it there",
    "its cases are too small",
    "its cases become large only where torch launches another kernel",
    "its cases become large only up to a size at which nothing can wrap",
    "none of its cases becomes large",
    "no contract has its signature",
)
_FAILS, _SMALL, _OTHERS, _SHORT, _STUCK, _BARE = RANKS

_PATIENT = 4
_MAYBE_COPIED = "only for views with longer strides, which the host may copy before"


def examine_large(
    kernel: Kernel,
    case: Case | None,
    device: Runner,
    narrow: Sequence[str],
    code: HostCode = NOTHING,
    ways: Ways | None = None,
    names: Collection[str] = (),
) -> Verdict:
    """Return `passed` for a kernel that is right in every launch that torch makes, a finding with the call that leads
    to one in which it is not, else a candidate.

    Args:
        narrow: the 32-bit arithmetic that reaches an address (code/addresses.py).
        code: what the wheel's host code asks before it launches.
        ways: what made other kernels of its family large; what is found is added.
        names: of all kernels of the library.
    """
    if (settled := unmoved(kernel, narrow)) is not None:
        return settled
    shown = _shown(narrow)
    assert case is not None
    host = host_of(kernel, code, names)
    if host.never:
        return Verdict(outcome="passed", reason=f"torch launches it for no tensor: {host.never}")
    if host.small:
        return Verdict(outcome="passed", reason=f"nothing can wrap in a launch that torch makes: {host.small}")
    tested: list[Verdict] = []
    others: list[Move] = []

    def fits(move: Move) -> bool:
        shifts = _shifts(kernel, move, host) if host.when else []
        if shifts and not any(is_made(host, kernel, move, each) for each in shifts):
            others.append(move)
            return False
        return True

    try:
        for move in moves_of(kernel, case, device, ways or Ways(), fits, host.rule.ways if host.rule else ()):
            tested.append(_beyond(kernel, move, device, host))
            if tested[-1].outcome in ("wrong", "out_of_bounds", "timeout"):
                return tested[-1]
    except (NotBound, WrongBinding) as error:
        if not tested:
            return _candidate(_STUCK, f"{shown}; it cannot be tested: {error}")
    if not tested and host.keeps_small:
        reason = f"torch launches it for no tensor that reaches over 2**31 bytes; {host.text}"
        return Verdict(outcome="passed", reason=f"{reason}; its cases were not made so large")
    if not tested and others:
        return _candidate(_OTHERS, f"{shown}; {host.when}", inputs={"case": others[0].program.label})
    if not tested:
        return _candidate(_STUCK, shown if not host.unknown else f"{shown}; {host.unknown}")
    failing = [each for each in tested if each.where.get("rank") == _FAILS]
    passed = [each for each in tested if each.outcome == "passed"]
    if passed and not failing:
        return replace(passed[0], reason="; ".join(dict.fromkeys(each.reason for each in passed)))
    return (failing or tested)[0]


def unmoved(kernel: Kernel, narrow: Sequence[str]) -> Verdict | None:
    """Return the verdict on a kernel that cannot wrap, or that no contract binds; None for one that is to be run."""
    if not narrow:
        return Verdict(outcome="passed", reason="no 32-bit arithmetic reaches an address: nothing can wrap")
    return _candidate(_BARE, _shown(narrow)) if kernel.contract is None else None


def _shown(narrow: Sequence[str]) -> str:
    return f"{len(narrow)} values of 32 bits reach an address, first `{narrow[0]}`"


def _candidate(rank: str, reason: str, **fields: object) -> Verdict:
    where = {"rank": rank, **dict(fields.pop("where", {}))}  # type: ignore[call-overload]
    return Verdict(outcome="overflow_candidate", reason=f"{rank}: {reason}", where=where, **fields)  # type: ignore[arg-type]


@dataclass(slots=True, kw_only=True)
class _Tested:
    """What is known after some launches: the sizes at which it was right, by how many units the last of them, the first
    that torch does not make, and one at which it fails where torch launches another kernel."""

    right: list[str]
    last: int = 0
    beyond: str = ""
    others: str = ""


def _beyond(kernel: Kernel, move: Move, device: Runner, host: Host) -> Verdict:
    """Run at each limit that a launch of torch's passes; the first at which it is not as it was decides."""
    tested = _Tested(right=[])
    for units, text in _targets(kernel, move):
        shift = replace(move.shift, units=units)
        tensors = tensors_of(kernel, move, shift)
        if not host.makes(tensors):
            tested.beyond = tested.beyond or text
            continue
        try:
            moved = device.run_shifted(move.step, shift)
        except WrongBinding:
            continue  # no launch has so many threads, no length so many bits, or no buffer fits here
        if moved.trouble is not None and moved.trouble.kind == "timeout":
            if tested.last * 2 < units:
                break  # so many steps that they are not waited for: nothing is known from here on
            # Not half as many steps took no longer than the patience: so many times that is no matter of their number.
            moved = device.run_shifted(move.step, replace(shift, milliseconds=_PATIENT * shift.milliseconds))
        if moved.trouble is None and moved.contents == move.small.contents:
            tested.right.append(text)
            tested.last = units
            continue
        if not is_made(host, kernel, move, shift):
            tested.others = text
            break
        return _failed(kernel, replace(move, shift=shift), host, moved, text, tested.right)
    label = move.program.label
    if tested.others:
        reason = f"it fails {tested.others}, and torch launches it only if {host.when}"
        return _candidate(_OTHERS, reason, inputs={"case": label})
    if not tested.right:
        if tested.beyond:
            reason = f"torch launches it for no tensor {tested.beyond}; {host.text}"
            return Verdict(outcome="passed", reason=reason, inputs={"case": label})
        return _candidate(_SMALL, "they do not reach 2**31 bytes", inputs={"case": label})
    reason = f"right up to {tested.right[-1]}" + (f"; {host.text}" if tested.beyond else "")
    return Verdict(outcome="passed", reason=reason, inputs={"case": label, "moved": tested.right[-1]})


def _shifts(kernel: Kernel, move: Move, host: Host) -> list[Shift]:
    """Return the large launches of a way that the host's guards let pass."""
    shifts = [replace(move.shift, units=units) for units, _ in _targets(kernel, move)]
    return [each for each in shifts if host.makes(tensors_of(kernel, move, each))]


def _targets(kernel: Kernel, move: Move) -> list[tuple[int, str]]:
    """Return by how many units to grow, smallest first: below each limit, across it, past it, and as far as it goes."""
    count = max(
        -(-move.step.grid[move.shift.axis] // (move.step.threadgroup[move.shift.axis] * max(move.shift.unit, 1))), 1
    )
    targets: dict[int, str] = {}
    for each in named(kernel, move.step):
        reach = each.buffer.size
        if not (growth := move.shift.growth(each.key, reach)):
            continue
        units = [(1, "bytes"), (each.element, "elements")][: 1 + (each.element > 1)]
        for (limit, text), (size, unit) in itertools.product(LIMITS, units):
            ends = (limit * size - reach) // growth  # the last launch that ends below the limit
            if ends <= 2 * count or (ends + 2 * count) * growth + reach > largest_size():
                continue
            what = f"{text} {unit} of {each.name}"
            targets.setdefault(ends, f"below {what}")
            targets.setdefault(ends + max(count // 2, 1), f"across {what}")
            targets.setdefault(ends + count + 1, f"past {what}")
    return sorted(targets.items())


def _failed(kernel: Kernel, move: Move, host: Host, moved: Moved, text: str, right: Sequence[str]) -> Verdict:
    what = moved.trouble.text if moved.trouble else "its results are not those of the same rows of a small tensor"
    where: dict[str, object] = {"sizes": {str(key): size for key, size in moved.sizes.items()}}
    where["bytes"] = sum(moved.sizes.values())
    if moved.trouble:
        where |= {"thread": list(moved.trouble.thread), **moved.trouble.where}
    inputs: dict[str, object] = {"case": move.program.label, "moved": text}
    if not right:  # nothing can wrap there: the case was made large wrongly, and says nothing of the kernel
        return _candidate(_SHORT, f"{text}, {what}", inputs=inputs)
    until = f"right up to {right[-1]}; not {text}: {what}"
    views = "" if host.when else strides_text(move, move.shift)  # a condition says that such launches are made
    if host.rule is None or host.unknown or host.rule.chooses or (views and not host.rule.views):
        why = host.unknown or (host.rule.chooses if host.rule else "") or _MAYBE_COPIED
        return _candidate(_FAILS, f"{until} ({why})", inputs=inputs, where=where)
    tensors, numbers = tensors_of(kernel, move, move.shift), numbers_of(kernel, move, move.shift)
    inputs["call"] = call_of(kernel, move, tensors, host.rule.call, numbers)
    if views:
        inputs["strides"] = views
    return Verdict(outcome=_outcome(moved), reason=until, inputs=inputs, where=where)


def _outcome(moved: Moved) -> Outcome:
    if moved.trouble is None:
        return "wrong"
    return "timeout" if moved.trouble.kind in ("timeout", "deadlock") else "out_of_bounds"


# What the workers of a run know of large launches already: kernels that make their addresses alike share a verdict.

_SHARED = ("passed", "overflow_candidate")


@dataclass(slots=True, kw_only=True)
class LargeRuns:
    """The large launches of one worker, one kernel after the other.

    Args:
        host: what the wheel's host code asks before it launches.
        folder: of this run alone, where its workers leave verdicts for each other.
    """

    host: HostCode
    folder: Path
    _ways: Ways = field(default_factory=Ways)
    _seen: dict[str, tuple[str, Verdict]] = field(default_factory=dict)

    def settled(self, kernel: Kernel, found: Addressing) -> Verdict | None:
        """Return a kernel's verdict if it need not be run."""
        if (verdict := unmoved(kernel, found.narrow)) is not None:
            return verdict
        key = _key(kernel, found)
        if key not in self._seen and (row := _read(self.folder / key)) is not None:
            self._seen[key] = row["name"], Verdict(**row["verdict"])
        if key not in self._seen:
            return None
        name, verdict = self._seen[key]
        return replace(verdict, reason=f"{verdict.reason} (as {name}, which makes its addresses alike)")

    def examined(
        self, kernel: Kernel, case: Case, device: Runner, found: Addressing, names: Collection[str]
    ) -> Verdict:
        """Run a kernel of a library with these kernels, and keep its verdict for those that make addresses alike."""
        verdict = examine_large(kernel, case, device, found.narrow, self.host, self._ways, names)
        if verdict.outcome in _SHARED:
            key = _key(kernel, found)
            self._seen[key] = kernel.name, verdict
            self.folder.mkdir(mode=0o700, exist_ok=True)
            write_whole(self.folder / key, json.dumps({"name": kernel.name, "verdict": asdict(verdict)}), mode=0o600)
        return verdict


def _read(path: Path) -> dict[str, Any] | None:
    try:
        row: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        return None
    return row


def _key(kernel: Kernel, found: Addressing) -> str:
    """Return a digest of what two kernels must share: form, rule, sizes of types, and what decides what they touch."""
    arguments = kernel.metadata.arguments
    sizes = [(each.name, each.element, each.size, each.align) for each in arguments]
    rule = rule_of(kernel.contract, kernel.name) if kernel.contract else None
    family = kernel.contract.family if kernel.contract else ""
    named = sorted(kernel.parts.items()) if rule and rule.when else ()  # a condition may name them
    shared = family, rule, sizes, kernel.metadata.arrays, named, found.digest
    return hashlib.sha256(repr(shared).encode()).hexdigest()[:32]
