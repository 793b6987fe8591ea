"""Which official macOS wheels import on Linux and hold the CPU's checks, by their own code: a table.

    nox -s benchmark -- official_releases [VERSION ...] [--write]

Each release is fetched and unpacked once (0.3 to 0.8 GB). Without a VERSION: the newest patch release of each minor one
since 1.12. The checks are those of the slow test (tests/tooling/simulation/official/programs/wheel.py).
"""

from __future__ import annotations

import argparse
import json
import resource
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
CHECKS = ROOT / "tests/tooling/simulation/official/programs/wheel.py"
RECORD = ROOT / "docs/verify/official_releases.md"
RELEASES = (
    *("1.12.1", "1.13.1", "2.0.1", "2.1.2", "2.2.2", "2.3.1", "2.4.1", "2.5.1", "2.6.0", "2.7.1", "2.8.0", "2.9.1"),
    *("2.10.0", "2.11.0", "2.12.1", "2.13.0", "2.14.1", "2.15.0"),
)
HEAD = """\
# Official wheels on Linux, by release

`nox -s benchmark -- official_releases --write` made this; [the page of the official wheel](official_wheel.md) says how
it is done. A check is a function of `tests/tooling/simulation/official/programs/wheel.py`; seconds are of the CPU, for
all of them, torch's import (two of them) included.

| release | Python | imports of macOS | not provided | checks that hold | which do not | CPU seconds |
|---|---|---|---|---|---|---|
"""


def main() -> int:
    """Run each release, print its row, and write the page if it was asked for."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("releases", metavar="VERSION", nargs="*", default=list(RELEASES))
    parser.add_argument("--write", action="store_true", help=f"write {RECORD.relative_to(ROOT)}")
    given = parser.parse_args()
    rows = [row(release) for release in given.releases]
    if given.write:
        RECORD.write_text(HEAD + "".join(rows), encoding="utf-8")
    return 0


def row(release: str) -> str:
    """Return a release's row, as Markdown."""
    facts_file = Path("official-facts.json")
    covered = simulate(f"torch=={release}", "--json", str(facts_file))
    if covered.returncode:
        said = (covered.stderr.strip() or covered.stdout.strip()).splitlines()[-1]
        return shown(f"| {release} | | | | none | {said} | |\n")
    facts = json.loads(facts_file.read_text(encoding="utf-8"))
    facts_file.unlink()
    before = children()
    run = simulate(f"torch=={release}", "--", "python", str(CHECKS))
    seconds = children() - before
    names = [line.split(" ", 1)[0] for line in run.stdout.splitlines() if line.endswith(" ok")]
    failed = [line.split(" ", 1)[0] for line in run.stdout.splitlines() if " Traceback" in line]
    if not names and not failed:
        failed = [(run.stderr.strip() or "it said nothing").splitlines()[-1]]
    elif run.returncode not in (1, 3):
        failed.append(f"ended with {run.returncode}")
    missing = ", ".join(name for name, _ in facts["not_provided"]) or "none"
    cells = (release, facts["python"], sum(facts["imports"].values()), missing, len(names), ", ".join(failed) or "none")
    return shown(f"| {' | '.join(map(str, cells))} | {seconds:.0f} |\n")


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
