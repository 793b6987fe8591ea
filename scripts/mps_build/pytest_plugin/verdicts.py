"""What a test that fails on mps says: decided from its runs, without torch and without pytest. Pure."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from typing import Any, Literal

Kind = Literal["new", "undecided", "known", "limit", "cpu"]
# In the order of the summary: what a maintainer should look at comes first.
MEANINGS: Mapping[Kind, str] = {
    "new": "new: fails on mps alone, and no known issue names the operator",
    "undecided": "undecided: fails on the CPU in another way, so that nothing is compared",
    "known": "may be a known issue: one that holds here speaks of the operator",
    "limit": "limit of this release: mps does not have it",
    "cpu": "fails on the CPU too",
}
_ABSENT = re.compile(r"operator '(aten::[\w.]+)' is not currently (?:implemented|supported)[^\n]*")
_LINE = r"[^\n]*"  # what stands before and behind, on one line
_LIMITS = tuple(
    re.compile(_LINE + _LINE.join(parts) + _LINE, re.IGNORECASE)
    for parts in (
        (r"\bMPS\b", r"(?:doesn't|does not|not) (?:yet )?(?:support|have)"),
        (r"(?:only supported|only implemented|not implemented|not (?:yet )?supported|unsupported)", r"\bMPS\b"),
        (r"(?:float64|double|complex128|ComplexDouble)", r"\bMPS\b", r"(?:not support|cannot|unsupported)"),
        (r"(?:cannot convert|can't convert)", r"\bMPS\b", r"(?:float64|complex128)"),
        (r"\bMPS\b", r"(?:unsupported|no mapping for)"),
    )
)
_SIMULATION = re.compile(r"software Metal: (?P<words>[^\n]*)")
_MOST_ISSUES = 4
# Operators whose names are words of any title.
_ENGLISH = {"all", "any", "full", "range", "real", "size", "where"}
# Of an operator's name: which part of it this is, and where. `x << y` dispatches a name of its own.
_PART = re.compile(r"^(?:native|mps)_|_(?:forward|(?:kernel_)?backward(?:_data)?|kernel)$")
_OF_PYTHON = {
    "lshift": "bitwise_left_shift",
    "rshift": "bitwise_right_shift",
    **{name: f"bitwise_{name}" for name in ("and", "or", "xor")},
}
_DEVICE = re.compile(r"\b(?:mps|cpu)(?::0)?\b")
_NUMBER = re.compile(r"0x[0-9a-f]+|\d+(?:\.\d+)?(?:e[-+]?\d+)?")


@dataclass(frozen=True, slots=True)
class Run:
    """One run of a test: as the device `mps`, with it as the CPU, or with each operator's answer checked.

    Attributes:
        failed: what pytest says of the failure, its last lines; None: it passed.
        differ, absent, unknown: operators that differ, that mps lacks, and that cannot be compared, with why.
    """

    failed: str | None
    differ: Mapping[str, str] = field(default_factory=dict)
    absent: Mapping[str, str] = field(default_factory=dict)
    unknown: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Verdict:
    """What a test's failure on mps is, with the reason in one line, and the known issues that it may be."""

    test: str
    kind: Kind
    reason: str
    issues: tuple[Mapping[str, Any], ...] = ()

    @property
    def line(self) -> str:
        """Return it as a line of the summary."""
        known = "; ".join(f"{row['id']}: {row['title']} {row.get('link') or ''}".rstrip() for row in self.issues)
        return f"{self.test}: {self.reason}" + (f" [{known}]" if known else "")


def limit_of(text: str) -> str | None:
    """Return which limit of a release a failure's text names: an operator or a type that mps lacks; None: none.

    >>> limit_of("NotImplementedError: The operator 'aten::f.out' is not currently implemented for the MPS device. If")
    'aten::f.out is not implemented for mps'
    """
    if found := _ABSENT.search(text):
        return f"{found[1]} is not implemented for mps"
    for pattern in _LIMITS:
        if found := pattern.search(text):
            return found[0].strip().removeprefix("E").strip()[:200]
    return None


def is_same_failure(one: str, other: str) -> bool:
    """Whether two failures are the same but for numbers and the name of the device."""
    return _plain(one) == _plain(other)


def is_accepted(verdicts: Iterable[Verdict], accepted: str | None) -> bool:
    """Whether all failures are such as do not count: `limits` of the release, with `known` its known issues too."""
    kinds: Mapping[str, tuple[Kind, ...]] = {"limits": ("limit",), "known": ("limit", "known")}
    return accepted is not None and all(each.kind in kinds[accepted] for each in verdicts)


def needs_operators(mps: Run, cpu: Run) -> bool:
    """Whether a test is run with each operator checked: the CPU does not fail in the same way, and it is no limit."""
    return limit_of(mps.failed or "") is None and (
        cpu.failed is None or not is_same_failure(mps.failed or "", cpu.failed)
    )


def judged(test: str, mps: Run, cpu: Run | None, operators: Run | None, rows: Sequence[Mapping[str, Any]]) -> Verdict:
    """Return what a failure is.

    Args:
        cpu, operators: the other runs; None: there was none. rows: the known issues that hold for this torch and macOS.
    """
    said = mps.failed or ""
    if cpu is not None and cpu.failed is not None and is_same_failure(said, cpu.failed):
        return Verdict(test, "cpu", _last(said))
    if limit := limit_of(said):
        return Verdict(test, "limit", limit)
    differ = dict(operators.differ) if operators else {}
    absent = dict(operators.absent) if operators else {}
    for name, why in list(absent.items()):
        if limit_of(why) is None:  # a refusal of what mps has is no limit
            differ[name] = f"refuses what the CPU answers: {absent.pop(name)}"
    if absent and not differ and operators and operators.failed is None:
        return Verdict(test, "limit", "; ".join(f"{name}: {why}" for name, why in absent.items()))
    names = "; ".join(f"{name} {why}" for name, why in differ.items())
    if (cpu is None or cpu.failed is not None) and not names and (operators is None or operators.failed is not None):
        return Verdict(
            test, "undecided", f"on mps {_last(said)}; as the CPU {_last((cpu.failed if cpu else '') or '')}"
        )
    others = list(operators.unknown) if operators else []
    issues = tuple(issues_of(differ or others, rows, said))
    if found := _SIMULATION.search(said):
        names = names or f"refused by the software Metal: {found['words']}"
    unknown = f" (not compared: {', '.join(others)})" if others else ""
    reason = names or f"no operator differs from the CPU's by itself{unknown}: {_last(said)}"
    return Verdict(test, "known" if issues else "new", reason, issues)


def issues_of(operators: Iterable[str], rows: Iterable[Mapping[str, Any]], said: str = "") -> list[Mapping[str, Any]]:
    """Return the known issues that speak of one of the operators, by their `operators` or the words of their title.

    A row of all operators (`*`) names none: it is one only if what it says stands in what the test says, `said`.

    >>> row = {"id": "1", "title": "bmm, baddbmm of an inner size of 32767", "operators": ["matmul*"]}
    >>> [len(issues_of([name], [row])) for name in ("aten::bmm", "aten::matmul_backward", "aten::mm")]
    [1, 1, 0]
    """
    names = set[str]().union(*map(_names_of, operators))

    def says_so(row: Mapping[str, Any]) -> bool:
        return "*" in (row.get("operators") or ()) and re.search(row.get("says") or r"(?!)", said) is not None

    def names_one(row: Mapping[str, Any]) -> bool:
        words = {word.strip("_") for word in re.findall(r"\w+", str(row["title"]).lower())} - _ENGLISH
        patterns = [str(each).lstrip("_") for each in row.get("operators") or () if each != "*"]
        return any(name in words or any(fnmatchcase(name, each) for each in patterns) for name in names)

    # Those that name operators say more than a title.
    found = [row for row in sorted(rows, key=lambda row: not row.get("operators")) if says_so(row) or names_one(row)]
    return sorted(found, key=lambda row: not says_so(row))[:_MOST_ISSUES]


def _names_of(operator: str) -> set[str]:
    """Return how rows may spell an operator that the dispatcher names: theirs are the names that Python calls.

    >>> sorted(_names_of("aten::native_layer_norm_backward")), sorted(_names_of("aten::__ilshift__.Tensor"))
    (['layer_norm', 'native_layer_norm_backward'], ['bitwise_left_shift'])
    """
    name = operator.removeprefix("aten::").partition(".")[0].strip("_")
    name = _OF_PYTHON.get(name.removeprefix("i"), name)
    attention = {"attention_plain"} if "dot_product_attention" in name else set()
    return {name, _PART.sub("", name), *attention}


def counted(verdicts: Iterable[Verdict]) -> str:
    """Return how many there are of each kind, as words."""
    numbers = Counter(each.kind for each in verdicts)
    words = {
        "new": "new",
        "undecided": "undecided",
        "known": "by known issues",
        "limit": "by limits of the release",
        "cpu": "on the CPU too",
    }
    return ", ".join(f"{numbers[kind]} {words[kind]}" for kind in MEANINGS if numbers[kind])


def as_lines(verdicts: Sequence[Verdict]) -> list[str]:
    """Return the summary for a terminal."""
    out = [f"{len(verdicts)} tests that fail on mps: {counted(verdicts)}"]
    for kind, meaning in MEANINGS.items():
        if of := [each for each in verdicts if each.kind == kind]:
            out += ["", f"{meaning}:", *(f"  {each.line}" for each in of)]
    return out


def as_markdown(verdicts: Sequence[Verdict], *, where: str) -> str:
    """Return the summary for a job's page."""
    head = f"### mps compared with the CPU ({where})\n\n"
    if not verdicts:
        return f"{head}Nothing fails on mps.\n"
    rows = [
        f"| {each.kind} | `{_cell(each.test)}` | {_cell(each.line.partition(': ')[2])} |"
        for kind in MEANINGS
        for each in verdicts
        if each.kind == kind
    ]
    lines = (f"{len(verdicts)} tests fail on mps: {counted(verdicts)}.", "", "| | test | why |", "|---|---|---|", *rows)
    return head + "\n".join(lines) + "\n"


def _cell(text: str) -> str:
    return text.replace("|", "\\|").replace("\n", " ").replace("<", "&lt;")


def _last(text: str) -> str:
    """Return the line that says what went wrong: pytest begins it with an E."""
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    said = [line[1:].strip() for line in lines if line.startswith("E ")]
    return (said[0] if said else lines[-1] if lines else "(nothing was said)")[:300]


def _plain(text: str) -> str:
    return _NUMBER.sub("#", _DEVICE.sub("DEVICE", _last(text)))
