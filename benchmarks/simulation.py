"""The device suite on the simulated device: how many failures are explained, how many by limits, and CPU seconds.

    nox -s benchmark -- simulation [--macos 14.4,15.2] [--whole] [--kept DIR [--again]] [--rebuild] [--write]

The simulation is built first, apart; --rebuild compiles every object anew, and measures it. Without --whole only the
quick cases are asked. --write puts the rows into results.json, the share of each macOS as one measurement. Known issues
count as explained. With --kept the answers are kept, and those that are there are not asked for: they are counted with
the explanations of now; --again asks anew what has none.
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

from mps_build.common.records.device_record import Case, Simulated
from mps_build.verify.explanations import active_explanations, load_explanations, summed_up, with_explanation
from mps_build.verify.simulated_suite import EXPLANATIONS
from shared.record import record

TARGETS = {
    "simulation.build_cpu_s": "<= 720",
    "simulation.selectors": "1: each that the host code sends",
    "simulation.suite_explained": "1: no case without a letter",
    "simulation.limits_share": "<= 0.03",
    "simulation.quick_explained": "1: no case without a letter",
    "simulation.quick_limits_share": "<= 0.03",
    "simulation.quick_cpu_s": "<= 180",
    "simulation.suite_cpu_s": "<= 1500",
}
SUITE = Path(__file__).resolve().parents[1] / "tests" / "device"
_FAILED = ("failed", "crashed", "timeout")
_VERDICTS = (0, 10, 11)


class Run(NamedTuple):
    """One run of the suite: how many cases were asked, how they ended, and CPU seconds."""

    macos: str
    asked: int
    failed: int
    explained: int
    limits: int
    stale: int
    cpu_seconds: float


def main() -> int:
    """Run the suite once for each macOS; return 1 where a failure has no explanation."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--recipe", default="v2.6.0")
    parser.add_argument("--macos", default="14.4,15.2")
    parser.add_argument("--whole", action="store_true", help="all default layers, not only the quick cases")
    parser.add_argument("--kept", type=Path, metavar="DIR", help="keep the answers there, and count what is there")
    parser.add_argument("--again", action="store_true", help="with --kept: ask anew what has no explanation")
    parser.add_argument("--rebuild", action="store_true", help="compile every object anew, and measure it")
    parser.add_argument("--write", action="store_true", help="put the rows into benchmarks/results.json")
    given = parser.parse_args()
    built = _built(given.recipe, rebuild=given.rebuild)
    runs = [measure(given, macos) for macos in given.macos.split(",")]
    for run in runs:
        print(run)
    if given.write:
        _write_built(built, given)
        _write(runs, given)
    return 0 if all(run.explained == run.failed for run in runs) else 1


def measure(given: argparse.Namespace, macos: str) -> Run:
    """Run the suite as one macOS, or take the answers that are kept of it."""
    kept = given.kept / f"{macos}-{'whole' if given.whole else 'quick'}.json" if given.kept else None
    if kept is None or not kept.is_file():
        document, seconds = _ask(given, macos)
    else:
        one = json.loads(kept.read_text(encoding="utf-8"))
        document, seconds = one["document"], one["cpu_seconds"]
    document = explained(document)
    anew = [case["id"] for case in document["cases"] if case["outcome"] in _FAILED and not case.get("explained")]
    if given.again and anew:
        answers = {case["id"]: case for case in _ask(given, macos, only=anew)[0]["cases"]}
        document["cases"] = [answers.get(case["id"], case) for case in document["cases"]]
        document = explained(document)
    if kept is not None:
        kept.parent.mkdir(parents=True, exist_ok=True)
        kept.write_text(json.dumps({"document": document, "cpu_seconds": seconds}), encoding="utf-8")
    return counted(document, macos, seconds)


def explained(document: dict[str, Any]) -> dict[str, Any]:
    """Return a record whose failing cases are explained by the rows of now."""
    simulated = Simulated.model_validate(document["simulated"])
    rows = active_explanations(load_explanations(SUITE / EXPLANATIONS), simulated)
    bare = [Case.model_validate({**case, "explained": None}) for case in document["cases"]]
    cases = [with_explanation(case, rows) for case in bare]
    summed = summed_up(cases, rows).model_dump(mode="json")
    return {**document, "cases": [case.model_dump(mode="json") for case in cases], "explanations": summed}


def _ask(given: argparse.Namespace, macos: str, *, only: Sequence[str] = ()) -> tuple[dict[str, Any], float]:
    """Return a record of the suite, or of some of its cases, and the CPU seconds."""
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "answer.json"
        before = _cpu_seconds()
        options = ["--simulated", "--macos", macos, "--record", folder, "--json", str(file), "--jobs", "1"]
        part = ["--only", ",".join(only)] if only else [] if given.whole else ["--quick"]
        # 2: all of those that are asked again are skipped now; a command line that is refused leaves no file.
        _mps_build("verify_mps", given.recipe, *options, *part, verdicts=(0, 2, 10, 11) if only else _VERDICTS)
        return json.loads(file.read_text(encoding="utf-8")), _cpu_seconds() - before


def _built(recipe: str, *, rebuild: bool) -> dict[str, Any]:
    """Build the simulation where it is not there, and return what it covers."""
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "built.json"
        _mps_build("simulate", recipe, "--json", str(file), *(["--rebuild"] if rebuild else []))
        document: dict[str, Any] = json.loads(file.read_text(encoding="utf-8"))
        return document


def counted(document: dict[str, Any], macos: str, cpu_seconds: float) -> Run:
    """Return what a record holds; a case that is skipped was not asked."""
    cases = [case for case in document["cases"] if case["outcome"] != "skipped"]
    failed = [case for case in cases if case["outcome"] in (*_FAILED, "known")]
    letters = [(case.get("explained") or {}).get("letter") for case in failed]
    explained = sum(
        case["outcome"] == "known" or letter is not None for case, letter in zip(failed, letters, strict=True)
    )
    stale = len(document["explanations"]["stale"])
    return Run(macos, len(cases), len(failed), explained, letters.count("limit"), stale, round(cpu_seconds, 1))


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
    command = f"nox -s benchmark -- simulation --macos {given.macos}{' --whole' if given.whole else ''}{kept} --write"
    what = "default" if given.whole else "quick"
    share, limits = ("suite_explained", "limits_share") if given.whole else ("quick_explained", "quick_limits_share")
    texts = {
        share: "; ".join(f"as macOS {run.macos} {run.explained} of {run.failed} failing" for run in runs),
        limits: "; ".join(f"as macOS {run.macos} {run.limits} of {run.asked} asked" for run in runs),
    }
    seconds = "suite_cpu_s" if given.whole else "quick_cpu_s"
    texts[seconds] = f"one process, {runs[0].asked} cases"
    values = {
        share: [run.explained / max(run.failed, 1) for run in runs],
        limits: [run.limits / max(run.asked, 1) for run in runs],
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
