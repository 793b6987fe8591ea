"""The device suite on the simulated device: how many failures are known, how many by limits, and CPU seconds.

    nox -s benchmark -- simulation [--macos 14.4,15.2] [--seeds 0,1,2] [--whole] [--kept DIR [--again]] [--write]

The simulation is built first, apart; --rebuild compiles every object anew, and measures it. Without --whole only the
quick cases are tested. --write puts the rows into results.json, the share of each run as one measurement. With --kept
the answers are kept, and runs that are there are not made again; --again asks anew what was wrong in them, with the
known issues of now.
"""

from __future__ import annotations

import argparse
import json
import resource
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

from shared.record import record

TARGETS = {
    "simulation.build_cpu_s": "<= 720",
    "simulation.selectors": "1: each that the host code sends",
    "simulation.suite_explained": "1: each failure is a known issue",
    "simulation.limits_share": "<= 0.01",
    "simulation.quick_explained": "1: each failure is a known issue",
    "simulation.quick_limits_share": "<= 0.01",
    "simulation.quick_cpu_s": "<= 180",
    "simulation.suite_cpu_s": "<= 1500",
}
_WRONG = ("failed", "crashed", "timeout", "known")
_VERDICTS = (0, 10, 11)
_MOST_LIMITS = 0.01


class Run(NamedTuple):
    """One run of the suite: how many cases were tested, how they ended, which known issues no case met, CPU seconds."""

    macos: str
    seed: int
    tested: int
    failed: int
    known: int
    limits: int
    unmet: tuple[str, ...]
    cpu_seconds: float


def main() -> int:
    """Run the suite for each macOS and seed; return 1 where a failure is no known issue, or too many are limits."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--recipe", default="v2.6.0")
    parser.add_argument("--macos", default="14.4,15.2")
    parser.add_argument("--seeds", default="0")
    parser.add_argument("--whole", action="store_true", help="the default cases, not only the quick ones")
    parser.add_argument("--kept", type=Path, metavar="DIR", help="keep the answers there, and count what is there")
    parser.add_argument("--again", action="store_true", help="with --kept: ask anew what was wrong")
    parser.add_argument("--rebuild", action="store_true", help="compile every object anew, and measure it")
    parser.add_argument("--write", action="store_true", help="put the rows into benchmarks/results.json")
    given = parser.parse_args()
    built = _built(given.recipe, rebuild=given.rebuild)
    runs = [measure(given, macos, int(seed)) for macos in given.macos.split(",") for seed in given.seeds.split(",")]
    for run in runs:
        print(run)
    print(f"known issues that no run of their range met: {', '.join(unmet(runs)) or 'none'}")
    if given.write:
        _write_built(built, given)
        _write(runs, given)
    return 0 if all(run.known == run.failed and run.limits <= _MOST_LIMITS * run.tested for run in runs) else 1


def measure(given: argparse.Namespace, macos: str, seed: int) -> Run:
    """Run the suite as one macOS with one seed, or take the answers that are kept of it."""
    name = f"{macos}-{seed}-{'whole' if given.whole else 'quick'}.json"
    kept = given.kept / name if given.kept else None
    if kept is None or not kept.is_file():
        document, seconds = _ask(given, macos, seed)
    else:
        one = json.loads(kept.read_text(encoding="utf-8"))
        document, seconds = one["document"], one["cpu_seconds"]
        if given.again:
            wrong = [case["id"] for case in document["cases"] if case["outcome"] in _WRONG]
            document = _with_answers(document, _ask(given, macos, seed, only=wrong)[0])
    if kept is not None:
        kept.parent.mkdir(parents=True, exist_ok=True)
        kept.write_text(json.dumps({"document": document, "cpu_seconds": seconds}), encoding="utf-8")
    return counted(document, macos, seed=seed, cpu_seconds=seconds)


def _with_answers(document: dict[str, Any], part: dict[str, Any]) -> dict[str, Any]:
    """Return a record with the answers of a later run of some of its cases."""
    later = {case["id"]: case for case in part["cases"]}
    cases = [later.get(case["id"], case) for case in document["cases"]]
    met = {case.get("known_issue") for case in cases if case["outcome"] == "known"}
    return {
        **document,
        "cases": cases,
        "known_issues": part["known_issues"],
        "unmet": [row for row in document["unmet"] if row not in met],
    }


def _ask(given: argparse.Namespace, macos: str, seed: int, *, only: Sequence[str] = ()) -> tuple[dict[str, Any], float]:
    """Return a record of the suite, or of some of its cases, and the CPU seconds."""
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "answer.json"
        before = _cpu_seconds()
        options = ["--simulated", "--macos", macos, "--record", folder, "--json", str(file), "--jobs", "1"]
        options += ["--seed", str(seed)]
        part = ["--only", ",".join(only)] if only else [] if given.whole else ["--quick"]
        # 2: all of those that are tested again are skipped now; a command line that is refused leaves no file.
        _mps_build("verify_mps", given.recipe, *options, *part, verdicts=(0, 2, 10, 11) if only else _VERDICTS)
        return json.loads(file.read_text(encoding="utf-8")), _cpu_seconds() - before


def _built(recipe: str, *, rebuild: bool) -> dict[str, Any]:
    """Build the simulation where it is not there, and return what it covers."""
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "built.json"
        _mps_build("simulate", recipe, "--json", str(file), *(["--rebuild"] if rebuild else []))
        document: dict[str, Any] = json.loads(file.read_text(encoding="utf-8"))
        return document


def counted(document: dict[str, Any], macos: str, *, seed: int, cpu_seconds: float) -> Run:
    """Return what a record holds; a case that is skipped was not tested."""
    cases = [case for case in document["cases"] if case["outcome"] != "skipped"]
    failed = [case for case in cases if case["outcome"] in _WRONG]
    limits = {row["id"] for row in document["known_issues"] if row["kind"] == "limit"}
    return Run(
        macos=macos,
        seed=seed,
        tested=len(cases),
        failed=len(failed),
        known=sum(case["outcome"] == "known" for case in failed),
        limits=sum(case.get("known_issue") in limits for case in failed),
        unmet=tuple(document["unmet"]),
        cpu_seconds=round(cpu_seconds, 1),
    )


def unmet(runs: Sequence[Run]) -> list[str]:
    """Return the known issues that no run met, of those in whose range one ran; each macOS has rows of its own."""
    tested = {macos: [run for run in runs if run.macos == macos] for macos in dict.fromkeys(run.macos for run in runs)}
    each = [set.intersection(*(set(run.unmet) for run in mine)) for mine in tested.values()]
    return sorted(set.intersection(*each)) if each else []


def _write_built(built: dict[str, Any], given: argparse.Namespace) -> None:
    command = f"nox -s benchmark -- simulation{' --rebuild' if given.rebuild else ''} --write"
    release = f"torch {built['release']}"
    implemented, needed = built["selectors"]["implemented"], built["selectors"]["needed"]
    record(
        "simulation.selectors",
        [implemented / needed],
        unit="share",
        command=command,
        target=TARGETS["simulation.selectors"],
        versions=f"{release}: {implemented} of {needed}",
    )
    if given.rebuild:  # otherwise its seconds may be those of several builds of a part each
        record(
            "simulation.build_cpu_s",
            [built["build_cpu_seconds"]],
            unit="CPU s",
            command=command,
            target=TARGETS["simulation.build_cpu_s"],
            versions=f"{release}: every object anew, without the packages and the kernels",
        )


def _write(runs: list[Run], given: argparse.Namespace) -> None:
    kept = " --kept DIR --again" if given.again else " --kept DIR" if given.kept else ""
    whole = " --whole" if given.whole else ""
    command = f"nox -s benchmark -- simulation --macos {given.macos} --seeds {given.seeds}{whole}{kept} --write"
    what = "default" if given.whole else "quick"
    share, limits = ("suite_explained", "limits_share") if given.whole else ("quick_explained", "quick_limits_share")
    seconds = "suite_cpu_s" if given.whole else "quick_cpu_s"
    texts = {
        share: "; ".join(f"{_named(run)} {run.known} of {run.failed} failing" for run in runs),
        limits: "; ".join(f"{_named(run)} {run.limits} of {run.tested} tested" for run in runs),
        seconds: f"one process, {runs[0].tested} cases",
    }
    values = {
        share: [run.known / max(run.failed, 1) for run in runs],
        limits: [run.limits / max(run.tested, 1) for run in runs],
        seconds: [run.cpu_seconds for run in runs],
    }
    for name, measured in values.items():
        record(
            f"simulation.{name}",
            measured,
            unit="CPU s" if name == seconds else "share",
            command=command,
            target=TARGETS[f"simulation.{name}"],
            versions=f"torch {given.recipe.removeprefix('v')}, {what} cases: {texts[name]}",
        )


def _named(run: Run) -> str:
    return f"as macOS {run.macos}, seed {run.seed}:"


def _mps_build(*arguments: str, verdicts: tuple[int, ...] = _VERDICTS) -> None:
    """Run a command; a verdict is no failure of the measurement (10 and 11 are verdicts)."""
    status = subprocess.run((sys.executable, "-m", "mps_build", *arguments), check=False).returncode
    if status not in verdicts:
        raise SystemExit(f"mps_build {' '.join(arguments)} ended with {status}")


def _cpu_seconds() -> float:
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


if __name__ == "__main__":
    sys.exit(main())
