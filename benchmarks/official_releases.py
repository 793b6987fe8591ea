"""Which official macOS wheels import on Linux, and hold the checks of the CPU and of mps, by their own code: a table.

    nox -s benchmark -- official_releases [VERSION ...] [--write]

Each release is fetched and unpacked once (0.3 to 0.8 GB). Without a VERSION: the newest patch release of each minor one
since 1.12. The checks are those of the slow tests: tests/tooling/simulation/official/programs. `--write` keeps the rows
of releases that were not run.
"""

from __future__ import annotations

import argparse
import json
import re
import resource
import subprocess
import sys
from pathlib import Path
from typing import Any

from packaging.version import Version

ROOT = Path(__file__).resolve().parents[1]
PROGRAMS = ROOT / "tests/tooling/simulation/official/programs"
RECORD = ROOT / "docs/verify/official_releases.md"
OPERATORS = 45
RELEASES = (
    *("1.12.1", "1.13.1", "2.0.1", "2.1.2", "2.2.2", "2.3.1", "2.4.1", "2.5.1", "2.6.0", "2.7.1", "2.8.0", "2.9.1"),
    *("2.10.0", "2.11.0", "2.12.1", "2.13.0", "2.14.1", "2.15.0"),
)
HEAD = """\
# Official wheels on Linux, by release

`nox -s benchmark -- official_releases --write` made this; [the page of the official wheel](official_wheel.md) says how
it is done. The checks of the CPU are functions of `tests/tooling/simulation/official/programs/wheel.py`, those of mps
stand in `metal.py` beside it: 45 operators against the wheel's own CPU, a training, a kernel that leaves its buffer, a
process that ends while work is queued. Seconds are of the CPU, for all checks, torch's import (three of them) included.
Imports: of macOS. Selectors: of those that the wheel's libraries send, how many no class of the software Metal answers.
Not there: operators that the release itself says it does not have, or not for mps or for that dtype; the rest of the 45
must equal the CPU. Fails: operators that do not, checks that do not hold, imports that nothing provides.

| release | Python | imports | selectors | CPU | mps | not there | fails | seconds |
|---|---|---|---|---|---|---|---|---|
"""
# What a release says itself of an operator that it does not have, or not for mps.
OWN = re.compile(
    r"not current(?:ly)? (?:implemented|supported)|is not implemented for|not supported (?:on|for|by)|only supported|"
    r"has no attribute|doesn't support|does not (?:have )?support"
)


def main() -> int:
    """Run each release, print its row, and write the page if `--write` is given."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("releases", metavar="VERSION", nargs="*", default=list(RELEASES))
    parser.add_argument("--write", action="store_true", help=f"write {RECORD.relative_to(ROOT)}")
    given = parser.parse_args()
    rows = {release: row(release) for release in given.releases}
    if given.write:
        RECORD.write_text(HEAD + "".join(merged(rows).values()), encoding="utf-8")
    return 0


def merged(rows: dict[str, str]) -> dict[str, str]:
    """Return the rows of the page with these in their places, oldest release first."""
    kept = {
        line.split("|")[1].strip(): f"{line}\n"
        for line in RECORD.read_text(encoding="utf-8").splitlines()
        if line.startswith("| ")
    }
    kept = {
        release: line
        for release, line in kept.items()
        if release[0].isdigit() and line.count("|") == HEAD.splitlines()[-2].count("|")
    }
    return dict(sorted({**kept, **rows}.items(), key=lambda each: Version(each[0])))


def row(release: str) -> str:
    """Return a release's row, as Markdown."""
    facts_file = Path("official-facts.json")
    covered = simulate(f"torch=={release}", "--json", str(facts_file))
    if covered.returncode:
        lines = (covered.stderr.strip() or covered.stdout.strip()).splitlines()
        said = next((line for line in lines if line.startswith("error: ")), lines[-1])
        return shown(f"| {release} | | | | | | | {said} | |\n")
    facts = json.loads(facts_file.read_text(encoding="utf-8"))
    facts_file.unlink()
    before = children()
    cpu, metal = (
        simulate(f"torch=={release}", "--", "python", str(PROGRAMS / name)) for name in ("wheel.py", "metal.py")
    )
    seconds = children() - before
    return shown(cells_of(release, facts, cpu, metal, seconds))


def cells_of(
    release: str,
    facts: dict[str, Any],
    cpu: subprocess.CompletedProcess[str],
    metal: subprocess.CompletedProcess[str],
    seconds: float,
) -> str:
    """Return the row of a release from what `simulate` and the two programs said; what it lacks is no failure."""
    held, failed = checks(cpu)
    _, also = checks(metal)
    reasons = dict(line.split(" ", 2)[1:] for line in metal.stdout.splitlines() if line.startswith("differs "))
    absent = [name for name, reason in reasons.items() if OWN.search(reason)]
    equal = OPERATORS - len(reasons) if "operators" in metal.stdout else 0
    fails = [f"{name} ({reason})" for name, reason in reasons.items() if name not in absent]
    fails += [*failed, *(each for each in also if each != "operators")]
    fails += [f"{name} is not provided" for name, _ in facts["not_provided"]]
    cells = (
        *(release, facts["python"], sum(facts["imports"].values())),
        facts["selectors"]["needed"] - facts["selectors"]["implemented"],
        f"{len(held)} of {len(held) + len(failed)}",
        f"{equal} of {OPERATORS - len(absent)}",
        *(", ".join(absent) or "none", "; ".join(fails).replace("|", "/") or "none"),
    )
    return f"| {' | '.join(map(str, cells))} | {seconds:.0f} |\n"


def checks(run: subprocess.CompletedProcess[str]) -> tuple[list[str], list[str]]:
    """Return the names of a program's checks: those that hold, and those that do not, or what it ended with."""
    names = [line.split(" ", 1)[0] for line in run.stdout.splitlines() if line.endswith(" ok")]
    failed = [line.split(" ", 1)[0] for line in run.stdout.splitlines() if " Traceback" in line]
    if not names and not failed:
        failed = [last_line(run)]
    elif run.returncode not in (1, 3):
        failed.append(f"ended with {run.returncode}: {last_line(run)}")
    return names, failed


def last_line(run: subprocess.CompletedProcess[str]) -> str:
    """Return the last line of a program's errors."""
    return (run.stderr.strip() or "it said nothing").splitlines()[-1][:200]


def simulate(*words: str) -> subprocess.CompletedProcess[str]:
    """Run `simulate` with these words."""
    argv = (sys.executable, "-m", "mps_build", "simulate", *words)
    return subprocess.run(argv, capture_output=True, text=True, check=False)


def children() -> float:
    """Return the CPU seconds of all programs that have ended."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def shown(line: str) -> str:
    """Print a row, and hand it back."""
    sys.stdout.write(line)
    sys.stdout.flush()
    return line


if __name__ == "__main__":
    raise SystemExit(main())
