"""How often triage is right, unknown and wrong: over every log of the repository whose right answer is known.

    nox -s benchmark -- triage [--show] [--catalogue FOLDER] [--record]

--show names each log that is not right. --catalogue FOLDER asks the triage of another checkout (its scripts/ folder),
for a figure of before. A cause that is named although none may be is wrong, and so is the runner-up in the first place.
A corpus whose logs were written after the last change of the rules is out of sample, and is marked so.
"""

from __future__ import annotations

import argparse
import sys
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

RECORDED = Path(__file__).resolve().parents[1] / "tests" / "recorded"
# Corpora in the order in which they came; True: written after the rules that are asked.
CORPORA: Mapping[str, bool] = {
    "specimens/build_logs": False,
    "triage_variants": False,
    "triage_collected": False,
    "specimens/reports": False,
    "triage_points": False,
    "triage_threads": False,
    "triage_fresh": True,
}
_MARGIN = 50


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """A log, what may be said of it (None: nothing), and the category that a process's text must have."""

    corpus: str
    name: str
    text: str
    causes: tuple[str | None, ...]
    category: str | None
    release: str | None


def main() -> int:
    """Score and print; ends with 1 if more than one in fifty is wrong."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--show", action="store_true", help="name each log that is not right")
    parser.add_argument("--catalogue", type=Path, metavar="FOLDER", help="scripts/ of another checkout")
    parser.add_argument("--record", action="store_true", help="keep the figures in benchmarks/results.json")
    options = parser.parse_args()
    if options.catalogue:
        sys.path.insert(0, str(options.catalogue.resolve()))
    scores: dict[str, Counter[str]] = {}
    for row in rows():
        outcome, said = score(row)
        scores.setdefault(row.corpus, Counter())[outcome] += 1
        if options.show and outcome != "right":
            print(f"{outcome:8} {row.corpus}: {row.name}: said {said}, right is {row.causes} {row.category or ''}")
    total: Counter[str] = Counter()
    for corpus, score_of in scores.items():
        total += score_of
        print(f"{corpus:24} {_words(score_of)}{'  (out of sample)' if CORPORA[corpus] else ''}")
    print(f"{'all':24} {_words(total)}")
    if options.record:
        _record(total, scores)
    return 1 if total["wrong"] * _MARGIN > total.total() else 0


def rows() -> Iterator[Row]:
    """Yield every log of the corpora that are there."""
    from mps_build.common import strict_yaml

    for corpus in CORPORA:
        path = RECORDED / f"{corpus}.yaml"
        for number, row in enumerate(strict_yaml.unchecked(path.read_text("utf-8")) if path.exists() else ()):
            yield Row(
                corpus=corpus,
                name=str(row.get("id") or row.get("what") or f"{row['cause']}, row {number}"),
                text=row["text"],
                causes=(row["cause"], *row.get("also_ok", ())),
                category=row.get("category"),
                release=row.get("recipe"),
            )


def score(row: Row) -> tuple[str, Any]:
    """Return right, unknown or wrong, and what was said."""
    from mps_build.host.triage import WrittenBy, judge
    from packaging.version import Version

    found = judge(row.text, release=Version(row.release) if row.release else None, written_by=WrittenBy())
    cause = found.log.cause
    category = found.device.category if found.device else None
    said = (cause, category) if row.category else cause
    if cause is not None and cause not in row.causes:
        return "wrong", said
    if row.category and category != row.category:
        return ("unknown" if category in (None, "unknown") and cause is None else "wrong"), said
    if cause is None and None not in row.causes:
        return "unknown", said
    if cause is None and not row.category and not found.log.failed and row.corpus == "triage_points":
        return "wrong", "no failure found"
    return "right", said


def _words(score_of: Counter[str]) -> str:
    of = score_of.total()
    return f"{of:4} logs: {score_of['wrong']:3} wrong, {score_of['unknown']:3} unknown, {score_of['right']:3} right"


def _record(total: Counter[str], scores: Mapping[str, Counter[str]]) -> None:
    from shared.record import record

    fresh = sum((score_of for corpus, score_of in scores.items() if CORPORA[corpus]), Counter[str]())
    command = "nox -s benchmark -- triage --record"
    for name, score_of, target in (("triage", total, "<= 0.02"), ("triage.fresh", fresh, "-")):
        if of := score_of.total():
            words = _words(score_of).strip()
            record(
                f"{name}.wrong", [score_of["wrong"] / of], unit="share", command=command, target=target, versions=words
            )
            record(
                f"{name}.unknown", [score_of["unknown"] / of], unit="share", command=command, target="-", versions=words
            )


if __name__ == "__main__":
    sys.exit(main())
