"""Known history: which public reports the simulated device shows, from the answers of the whole suite.

    nox -s benchmark -- history --kept DIR [--release 2.6.0] [--write]

DIR holds what `nox -s benchmark -- simulation --whole --kept DIR` has kept. --write puts the answers into
tests/sensitivity/history.json, from which docs/verify/simulated_history.md is generated, and the share into
results.json. Ends with 1 where tests/sensitivity/history.yaml lacks a reason, or has one too many.
"""

from __future__ import annotations

import argparse
import json
import sys
from pathlib import Path

from mps_build.common.known_issues import load_issues
from mps_build.common.records.device_record import Case
from mps_build.verify.history import answers, faults, history, load_reasons, reports, share_shown
from shared.record import record

TESTS = Path(__file__).resolve().parents[1] / "tests"
TARGET = ">= 0.6"


def main() -> int:
    """Count, print, and write what was asked for."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--kept", type=Path, required=True, metavar="DIR", help="where the answers are kept")
    parser.add_argument("--release", default="2.6.0")
    parser.add_argument("--write", action="store_true", help="put the answers and the share into the repository")
    given = parser.parse_args()
    entries = json.loads((TESTS / "sensitivity" / "catalogue.json").read_text(encoding="utf-8"))["entries"]
    found = reports(load_issues(TESTS / "device" / "known_issues.yaml"), entries, release=given.release)
    cases: dict[str, list[Case]] = {}  # by macOS, of all seeds
    for file in sorted(given.kept.glob("*-whole.json")):
        document = json.loads(file.read_text(encoding="utf-8"))["document"]
        mine = cases.setdefault(str(document["simulated"]["macos"]), [])
        mine += [Case.model_validate(case) for case in document["cases"]]
    said = {macos: answers(found, every) for macos, every in cases.items()}
    if not said:
        raise SystemExit(f"{given.kept} has no answers: nox -s benchmark -- simulation --whole --kept {given.kept}")
    reasons = load_reasons(TESTS / "sensitivity" / "history.yaml")
    lines = history(found, said, reasons)
    shown, whole = share_shown(lines)
    print(f"{shown} of {whole} known issues of {given.release}'s host code or kernels are shown")
    wrong = faults(lines, reasons)
    print(*wrong, sep="\n")
    if given.write:
        document = {"release": given.release, "answers": said}
        (TESTS / "sensitivity" / "history.json").write_text(json.dumps(document, indent=1, sort_keys=True) + "\n")
        record(
            "simulation.history_reproduced",
            [shown / max(whole, 1)],
            unit="share",
            command="nox -s benchmark -- history --kept DIR --write",
            target=TARGET,
            versions=f"torch {given.release}, as macOS {' and '.join(sorted(said))}: {shown} of {whole} known "
            "issues whose cause lies in host code or kernels",
        )
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
