"""How often triage is right, unknown and wrong: over every log of the repository whose right answer is known.

    nox -s benchmark -- triage [--show] [--catalogue FOLDER] [--record]

--show names each log that is not right. --catalogue FOLDER asks the triage of another checkout (its scripts/ folder),
for a figure of before. A cause that is named although none may be is wrong, and so is the runner-up in the first place.
The logs of triage_threads.yaml were each written after the rules were done: their first answers, before the rules were
fixed for them, are the score out of sample, and are reported by themselves.
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
THREADS = "triage_threads"
CORPORA = (
    *("specimens/build_logs", "specimens/mps_stderr", "triage_variants", "triage_collected", "specimens/reports"),
    *("triage_points", THREADS),
)
_MARGIN = 50


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """A log, what may be said of it (None among them: nothing), and the category that a process's text must have.

    Attributes:
        causes: None where the corpus asks for the category alone.
        process: exit, signal and host of the process that wrote the text, where they are known.
        first: how right the answer was before any rule was changed for the log.
    """

    corpus: str
    name: str
    text: str
    causes: tuple[str | None, ...] | None
    category: str | None
    release: str | None
    process: Mapping[str, Any] | None
    first: str


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
    first: Counter[str] = Counter()
    for row in rows():
        outcome, said = score(row)
        first[row.first] += row.corpus == THREADS
        scores.setdefault(row.corpus, Counter())[outcome] += 1
        if options.show and outcome != "right":
            print(f"{outcome:8} {row.corpus}: {row.name}: said {said}, right is {row.causes} {row.category or ''}")
    total: Counter[str] = Counter()
    for corpus, score_of in scores.items():
        total += score_of
        print(f"{corpus:24} {_words(score_of)}")
    print(f"{'all':24} {_words(total)}")
    print(f"{'first answers of threads':24} {_words(first)}  (out of sample)")
    if options.record:
        _record(total, first)
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
                causes=(row["cause"], *row.get("also_ok", ())) if "cause" in row else None,
                # what only our own comparison could say is not in the text
                category="unknown" if row.get("decided_by") == "comparison" else row.get("category"),
                process={name: row.get(name) for name in ("exit", "signal", "host")} if "exit" in row else None,
                release=row.get("recipe"),
                first=row.get("first", "right"),
            )


def score(row: Row) -> tuple[str, Any]:
    """Return right, unknown or wrong, and what was said."""
    from mps_build.host.triage import WrittenBy, judge
    from packaging.version import Version

    process = {name: value for name, value in (row.process or {}).items() if value is not None}
    release = Version(row.release) if row.release else None
    found = judge(row.text, release=release, written_by=WrittenBy(**process))
    cause = found.log.cause
    category = found.device.category if found.device else None
    said = (cause, category) if row.category else cause
    if row.causes is not None and cause is not None and cause not in row.causes:
        return "wrong", said
    if row.category and (category or "unknown") != row.category:
        return ("unknown" if category in (None, "unknown") and cause is None else "wrong"), said
    if cause is None and row.causes is not None and None not in row.causes:
        return "unknown", said
    if cause is None and not row.category and not found.log.failed and row.corpus == "triage_points":
        return "wrong", "no failure found"
    return "right", said


def _words(score_of: Counter[str]) -> str:
    of = score_of.total()
    return f"{of:4} logs: {score_of['wrong']:3} wrong, {score_of['unknown']:3} unknown, {score_of['right']:3} right"


def _record(total: Counter[str], first: Counter[str]) -> None:
    from shared.record import record

    command = "nox -s benchmark -- triage --record"
    for name, score_of, target in (("triage", total, "<= 0.02"), ("triage.first", first, "<= 0.02")):
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
