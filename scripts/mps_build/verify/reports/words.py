"""The words that every report uses for a record: one verdict, one sentence."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from mps_build.common.records.benchmark import BenchmarkRecord
from mps_build.common.records.device_record import Case, Estimate, Finding, Record

_KINDS = {"aot": "Metal kernels precompiled", "jit": "Metal kernels compiled at first use", "off": "without MPS"}
_VERDICTS = {
    "verified": "Verified",
    "rehearsed": "Rehearsed",
    "regressed": "Regressed",
    "known_issues_only": "Known issues only",
    "not_verified": "Not verified",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Found:
    """What is wrong once, in one case or in several; `finding`: its smallest call, where the suite has found one."""

    id: str
    cases: tuple[Case, ...]
    finding: Finding | None

    @property
    def first(self) -> Case:
        """The case that found it first."""
        return self.cases[0]

    @property
    def words(self) -> str:
        """How many cases it is, where it is more than one."""
        return plural(len(self.cases), "case") if len(self.cases) > 1 else self.first.id


def found_in(record: Record, cases: Iterable[Case]) -> list[Found]:
    """Return cases by what they come down to, in the order of the first case of each."""
    by_id = {finding.id: finding for finding in record.findings}
    groups: dict[str, list[Case]] = {}
    for case in cases:
        groups.setdefault(case.finding or case.id, []).append(case)
    return [Found(id=name, cases=tuple(group), finding=by_id.get(name)) for name, group in groups.items()]


def headline(record: Record) -> str:
    """Return the verdict as a heading; a partial record never looks whole."""
    return _VERDICTS[record.verdict] + (" (partial record)" if record.partial else "")


def further_cause(record: Record) -> str | None:
    """Return the record's cause where it says more than the verdict does."""
    return None if record.cause == record.verdict else record.cause


def torch_words(record: Record) -> str:
    """Return which torch it was; a run that ended before torch was imported does not make one up."""
    if record.torch.version is None:
        return "was not reached"
    return f"{record.torch.version} at {record.torch.commit[:12]}" if record.torch.commit else record.torch.version


def one_line(record: Record) -> str:
    """Return torch, machine and verdict in one line: what a person passes on."""
    torch = f"torch {record.torch.version}" if record.torch.version else "torch (not reached)"
    chip = record.host.get("chip") or record.host.get("arch") or "this machine"
    macos = f", macOS {record.host['macos']}" if record.host.get("macos") else ""
    if record.simulated is not None:
        chip, macos = "simulated on Linux", f", as on macOS {record.simulated.macos}{record.simulated.below}"
    cause = f" ({why})" if (why := further_cause(record)) else ""
    return f"{torch} on {record.device}, {chip}{macos}: {headline(record).lower()}{cause}"


def sentence(record: Record) -> str:
    """Return what the verdict means, in one sentence."""
    counts = record.counts
    new = [case for case in record.cases if case.is_new]
    ran = sum(counts.values()) - counts.get("skipped", 0)
    if record.partial and record.cause == "interrupted":
        return f"Interrupted after {ran} cases; no verdict follows from a part."
    if record.fault:
        return f"The injected fault was {record.fault.replace('_', ' ')}."
    if record.verdict == "not_verified":
        return "No verdict: " + (record.message or record.hint or record.cause or "nothing ran") + "."
    if record.verdict == "regressed":
        known = counts.get("known", 0)
        groups = found_in(record, new)
        of = f"{plural(len(groups), 'finding')} in " if len(groups) < len(new) else ""
        return f"{of}{plural(len(new), 'case')} of {ran} gave wrong answers that no known issue explains" + (
            f"; {known} more {'is' if known == 1 else 'are'} known." if known else "."
        )
    explained = explanation_words(record)
    if explained and record.verdict in ("known_issues_only", "rehearsed"):
        return f"Each of the failures among {ran} cases on the simulated device is explained: {explained}."
    if record.verdict == "known_issues_only":
        return f"{plural(counts.get('known', 0), 'case')} of {ran} wrong, each of them a known issue."
    right = f"All {ran} cases gave the answers that float64 on the CPU gives."
    if record.simulated is not None:
        return f"{right} It was a simulated device: no Mac's GPU or MPSGraph ran."
    return right if record.device == "mps" else f"{right} Nothing ran on MPS."


def explanation_words(record: Record) -> str:
    """Return how many cases of a simulated device are wrong by what; nothing where there are none."""
    found = record.explanations
    if found is None:
        return ""
    parts = (
        (found.bug, f"{plural(found.bug, 'bug')} of the release"),
        (found.limit, f"{plural(found.limit, 'limit')} of the simulation"),
        (found.unexplained, f"{found.unexplained} unexplained"),
    )
    return ", ".join(words for number, words in parts if number)


def facts(record: Record | BenchmarkRecord) -> list[tuple[str, str]]:
    """Return what a reader wants to know of the circumstances, as pairs; what is not known is left out."""
    host, gpu, torch = record.host, record.gpu, record.torch
    wheel = torch.wheel
    kind = f", {_KINDS.get(wheel.kind, wheel.kind)}" if wheel and wheel.kind else ""
    rows = [
        ("torch", " ".join(filter(None, (torch.version, f"({torch.commit[:12]})" if torch.commit else None)))),
        (
            "wheel",
            f"{wheel.file}, sha256 {wheel.sha256[:16]}…{kind}" if wheel else "",
        ),
        ("device", " ".join(filter(None, (record.device, str(gpu.get("name") or ""))))),
        ("simulated", _simulated(record)),
        ("GPU cores", str(gpu.get("gpu_cores") or host.get("gpu_cores") or "")),
        ("Mac", " ".join(str(host[key]) for key in ("model", "chip") if host.get(key))),
        ("macOS", " ".join(str(host[key]) for key in ("macos", "build") if host.get(key))),
        ("memory", f"{host['memory_gb']} GB" if host.get("memory_gb") else ""),
        ("processes", _processes(record)),
        ("Metal", str(host.get("metal") or "")),
        ("Python", " ".join(filter(None, (record.python.version, record.python.machine))) if record.python else ""),
        ("started", record.started.replace("T", " ").replace("+00:00", " UTC")),
        ("time", f"{record.seconds:.0f} s"),
        ("estimated", estimate_words(record.estimate) if isinstance(record, Record) else ""),
        ("tool", record.tool),
    ]
    removed = record.environment.get("removed") or {}
    if removed:
        rows.append(
            (
                "taken out of the environment",
                ", ".join(f"{name}={_short(str(value))}" for name, value in removed.items()),
            )
        )
    return [(name, value) for name, value in rows if value]


def _simulated(record: Record | BenchmarkRecord) -> str:
    simulated = record.simulated if isinstance(record, Record) else None
    if simulated is None:
        return ""
    return f"PyTorch {simulated.release}'s host code, as on macOS {simulated.macos}{simulated.below}"


def _processes(record: Record | BenchmarkRecord) -> str:
    together = record.concurrency
    if together is None:
        return ""
    return f"{together.processes}, {plural(together.threads, 'thread')} each, on {plural(together.cores, 'core')}"


def _short(text: str) -> str:
    return text if len(text) <= 40 else f"{text[:39]}…"


def estimate_words(estimate: Estimate | None) -> str:
    """Return what a run was to take, as it was estimated before its first case."""
    if estimate is None:
        return ""
    low, high = f"{estimate.low_seconds:.0f}", f"{estimate.high_seconds:.0f}"
    takes = low if low == high else f"{low} to {high}"
    return f"{takes} s for {estimate.cases:,} cases, {estimate.keys:,} graph keys"


def by_layer(cases: Iterable[Case]) -> dict[str, list[Case]]:
    """Return the cases of each layer, in the order of their first case."""
    layers: dict[str, list[Case]] = {}
    for case in cases:
        layers.setdefault(case.layer, []).append(case)
    return layers


def issue_link(issue: str) -> str | None:
    """Return the address of an issue named by number, or by repository and number."""
    if issue.isdecimal():
        return f"https://github.com/pytorch/pytorch/issues/{issue}"
    return None


def share_of_bound(case: Case) -> float | None:
    """Return how much of the allowed error the case used: 1 is the limit."""
    if case.largest is None or not case.bound:
        return None
    return case.largest / case.bound


def plural(number: int, word: str) -> str:
    """Return a count with its word.

    >>> plural(1, "case"), plural(2, "case")
    ('1 case', '2 cases')
    """
    return f"{number} {word}{'' if number == 1 else 's'}"
