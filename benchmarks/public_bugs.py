"""Public bugs of PyTorch on MPS, in which official releases they are, and whether the suite finds them.

    nox -s benchmark -- public_bugs [VERSION ...] [--suite FOLDER [--quick]] [--write]

Each bug of bugs/ is run over each official macOS wheel on Linux, by its own few lines: a minute a release.
`--write` merges the answers into public_bugs.json. A bug counts once it was seen on one release and is gone in a later
one: it is PyTorch's own then, in host code or kernels, and can be seen here.

`--suite FOLDER` has a record of verify_mps for each release: the `folder` in the JSON of `verify_mps --releases A,B
--simulated --quick`. A bug is found if a case is wrong on a release that has it and right on a later one that has not,
of those that have a record: a drawn case of its operators whose words are such as it gives, or the regression of its
issue, which is counted apart. The words are printed, to be judged.
"""

from __future__ import annotations

import argparse
import json
import re
import subprocess
import sys
from collections.abc import Mapping
from fnmatch import fnmatchcase
from pathlib import Path

from mps_build.common.files import write_whole
from mps_build.common.records.device_record import FAILED, Case, Record, load_record
from packaging.version import Version
from shared.record import record

HERE = Path(__file__).resolve().parent
RUN, ANSWERS = HERE / "bugs" / "run.py", HERE / "public_bugs.json"
_TEXT = r'"([^"]*)"'
_DECLARED = re.compile(rf"^@bug\(\s*(\d+),\s*{_TEXT},\s*{_TEXT}(?:,\s*{_TEXT})?,?\s*\)$", re.MULTILINE)
Answers = dict[str, dict[str, str]]


def main() -> int:
    """Run the releases that are named, and print what is known of each bug."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("releases", metavar="VERSION", nargs="*")
    parser.add_argument("--suite", metavar="FOLDER", type=Path, help="records of verify_mps by release")
    parser.add_argument("--quick", action="store_true", help="the records are of --quick, not of the default")
    parser.add_argument("--write", action="store_true", help=f"write {ANSWERS.name}, and the figure of the records")
    given = parser.parse_args()
    answers: Answers = json.loads(ANSWERS.read_text(encoding="utf-8")) if ANSWERS.is_file() else {}
    for release in given.releases:
        for number, word in run(release).items():
            answers.setdefault(number, {})[release] = word
    if given.write:
        ordered = {
            number: dict(sorted(answers[number].items(), key=lambda each: Version(each[0]))) for number in answers
        }
        write_whole(ANSWERS, json.dumps(dict(sorted(ordered.items(), key=lambda each: int(each[0]))), indent=1) + "\n")
    records = records_in(given.suite) if given.suite else {}
    seen, judged, found, own = 0, 0, 0, 0
    for number, (title, operators, says) in declared().items():
        words = answers.get(number, {})
        pair = bad_and_good(words)
        print(f"{number:>7}  {title}: " + (f"wrong in {pair[0]}, gone in {pair[1]}" if pair else said(words)))
        seen += pair is not None
        if tried := bad_and_good({at: word for at, word in words.items() if at in records}):
            bad, good = (records[at] for at in tried)
            case = found_by(number, operators, says, bad, good)
            judged, found = judged + 1, found + (case is not None)
            own += case is not None and number in case.issue
            print(
                f"         {tried[0]}: " + (f"found by {case.id}: {(case.reason or '')[:150]!r}" if case else "MISSED")
            )
    print(f"{len(declared())} bugs, {seen} seen on one release and gone in a later one")
    if records:
        of = ", ".join(
            f"{at}{' (chosen cases)' * bool(records[at].selection['only'])}" for at in sorted(records, key=Version)
        )
        print(f"{found} of {judged} are found by what was run of the suite on {of}; {own} by a regression of their own")
        if given.write and judged:
            what = f"{found} of {judged} public bugs, {own} by a regression of their own; official wheels {of}"
            seeds = sorted({str(each.selection["seed"]) for each in records.values()})
            write_figure(found, judged, given.quick, f"{what}; seed {', '.join(seeds)}")
    return 0


def records_in(folder: Path) -> dict[str, Record]:
    """Return the records of a folder by release; one of a run that was interrupted says nothing of what it missed."""
    found = {path.parent.name: load_record(path) for path in folder.glob("*/record.json")}
    whole = {release: each for release, each in found.items() if not each.partial}
    if not whole:
        sys.exit(f"{folder}: no record of a whole run, such as 2.6.0/record.json; verify_mps --releases makes them")
    return whole


def write_figure(found: int, judged: int, is_quick: bool, versions: str) -> None:
    """Put the share that is found into results.json."""
    record(
        "releases.quick_found" if is_quick else "releases.found",
        [round(found / judged, 4)],
        unit="share",
        command=f"nox -s benchmark -- public_bugs --suite FOLDER {'--quick ' * is_quick}--write",
        target=">= 0.75" if is_quick else ">= 0.9",
        versions=versions,
    )


def declared() -> dict[str, tuple[str, str, str]]:
    """Return each bug's title, operators and look, as its file says: it imports torch, and is only read."""
    texts = [(RUN.parent / name).read_text(encoding="utf-8") for name in ("cases.py", "networks.py")]
    return {number: tuple(rest) for text in texts for number, *rest in _DECLARED.findall(text)}


def run(release: str) -> dict[str, str]:
    """Return the word of each bug on a release; a wheel that does not come up here ends the run."""
    argv = (sys.executable, "-m", "mps_build", "simulate", f"torch=={release}", "--", "python", str(RUN))
    done = subprocess.run(argv, capture_output=True, text=True, check=False)
    rows = [json.loads(line) for line in done.stdout.splitlines() if line.startswith("{")]
    words = {str(row["bug"]): str(row["word"]) for row in rows if "bug" in row}
    if len(words) != len(declared()):
        sys.exit(f"{release}: {len(words)} of {len(declared())} bugs answered: {done.stderr.strip()[-400:]}")
    return words


def bad_and_good(words: Mapping[str, str]) -> tuple[str, str] | None:
    """Return the last release that has a bug, and the first later one that has not; None where it was not seen so.

    >>> bad_and_good({"2.10.0": "right", "2.4.1": "wrong", "2.5.1": "absent"}), bad_and_good({"2.4.1": "wrong"})
    (('2.4.1', '2.10.0'), None)
    """
    ordered = sorted(words, key=Version)
    bad = [at for at in ordered if words[at] == "wrong"]
    good = [at for at in ordered if words[at] == "right" and bad and Version(at) > Version(bad[-1])]
    return (bad[-1], good[0]) if bad and good else None


def said(words: Mapping[str, str]) -> str:
    """Return what is known of a bug that was not seen to be gone.

    >>> said({"2.4.1": "right", "2.5.1": "wrong"}), said({"2.4.1": "right"}), said({})
    ('wrong in 2.5.1 still', 'not seen', 'not run')
    """
    bad = [at for at in words if words[at] == "wrong"]
    return f"wrong in {max(bad, key=Version)} still" if bad else ("not seen" if words else "not run")


def found_by(number: str, operators: str, says: str, bad: Record, good: Record) -> Case | None:
    """Return a case that is wrong on the bad release and right on the good one, if it is of the bug.

    A drawn one of its operators, whose words look as `says`; else a regression, which was written for this issue.
    """
    right = {case.id for case in good.cases if case.outcome in ("passed", "unexpected_pass")}
    wrong = [case for case in bad.cases if case.outcome in (*FAILED, "known") and case.outcome != "timeout"]
    found = [case for case in wrong if case.id in right]
    drawn = [case for case in found if _fits(case.id, operators) and re.search(says, case.reason or "")]
    return next(iter((*drawn, *(case for case in found if number in case.issue))), None)


def _fits(name: str, patterns: str) -> bool:
    return any(fnmatchcase(name, each) or fnmatchcase(name, f"{each}:*") for each in patterns.split())


if __name__ == "__main__":
    sys.exit(main())
