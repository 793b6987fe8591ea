"""The suite over the unchanged host code: which blocks each case runs, and how it ends when nothing is wrong."""

from __future__ import annotations

import base64
import hashlib
import json
import random
import subprocess
import sys
import time
import zlib
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, Callable, Collection, Iterator, Sequence

from .child import SUITE, Question, ask_all

# Processes of some hundred cases each: a start costs 5 to 8 CPU seconds.
_CHUNK = 500
_SHUFFLED = 5  # seed of the second run's order
NEWEST, OLDER = "15.2", "14.4"
# (name, macOS, instrumented?): the second shows what depends on the order.
RUNS = (("cover-15.2", NEWEST, True), ("plain-15.2", NEWEST, False), ("cover-14.4", OLDER, True))


def folder_of(home: Path, suite_seed: int) -> Path:
    """Return where what belongs to one seed of the suite is kept: HOME itself for a run without --seed."""
    return home / f"suite-seed-{suite_seed}" if suite_seed else home


def hold_to_suite(folder: Path, suite: Path = SUITE) -> None:
    """Keep which suite a record is of; of an empty folder, that is the one there now.

    Raises:
        SystemExit: the record is of another state of the suite: its map and its ids are not those of this one.
    """
    whole = hashlib.sha256()
    for file in sorted(suite.rglob("*.py")):
        whole.update(f"{file.relative_to(suite)}\0".encode() + file.read_bytes() + b"\0")
    kept, now = folder / "suite.sha256", whole.hexdigest()
    if not (folder / "cases.json").is_file():
        folder.mkdir(parents=True, exist_ok=True)
        kept.write_text(now, encoding="utf-8")
    elif not kept.is_file() or kept.read_text(encoding="utf-8") != now:
        raise SystemExit(
            f"{folder} holds the record of another state of {suite}: give another HOME, or go on from the commit that"
            " began it (what HOME/coverage holds may be moved along)"
        )


def list_cases(home: Path) -> list[list[Any]]:
    """Return [file, id, is it of --quick] of every default case; listed once."""
    kept = home / "cases.json"
    if not kept.is_file():
        argv = (sys.executable, str(Path(__file__).with_name("ask.py")), str(SUITE), "--list")
        said = subprocess.run(argv, stdout=subprocess.PIPE, text=True, check=True).stdout
        kept.write_text(said.splitlines()[-1], encoding="utf-8")
    found: list[list[Any]] = json.loads(kept.read_text(encoding="utf-8"))
    return found


def chunks(cases: Sequence[Sequence[Any]], *, shuffled: bool) -> list[list[Sequence[Any]]]:
    """Return the cases in parts, one for each process; in the suite's order, or in another one by seed."""
    ordered = list(cases)
    if shuffled:
        random.Random(_SHUFFLED).shuffle(ordered)
    return [ordered[at : at + _CHUNK] for at in range(0, len(ordered), _CHUNK)]


def record_runs(
    home: Path,
    cases: Sequence[Sequence[Any]],
    *,
    plain: Path,
    instrumented: Path,
    jobs: int,
    runs: Collection[str],
    until: float,
    say: Callable[[str], None],
) -> int:
    """Run the suite as often as `runs` names, in parts beside each other; a part that is there is not run again.

    Args:
        until: begin no part after this, of the monotonic clock. Returns how many parts are left.
    """
    todo = []
    done: list[int] = []
    for name, macos, cover in RUNS:
        if name in runs:
            folder = home / "record" / name
            folder.mkdir(parents=True, exist_ok=True)
            for number, part in enumerate(chunks(cases, shuffled=not cover)):
                if not (folder / f"{number:03}.jsonl").is_file():
                    todo.append((folder, number, part, macos, cover))

    def run_one(work: tuple[Path, int, list[Sequence[Any]], str, bool]) -> None:
        folder, number, part, macos, cover = work
        if time.monotonic() > until:
            return
        scratch = folder / f"{number:03}"
        scratch.mkdir(exist_ok=True)
        questions = [Question(file, name, may_fail=True) for file, name, _ in part]
        answers = ask_all(questions, scratch, library=instrumented if cover else plain, macos=macos, cover=cover)
        if answers.error:
            say(f"  {folder.name} part {number}: {answers.error}")
            return
        rows = [*([answers.start] if answers.start else []), *answers.rows]
        beside = folder / f"{number:03}.part"
        beside.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
        beside.replace(folder / f"{number:03}.jsonl")
        done.append(number)
        say(f"  {folder.name} part {number}: {len(answers.rows)} cases")

    with ThreadPoolExecutor(jobs) as pool:
        list(pool.map(run_one, todo))
    return len(todo) - len(done)


def read_run(home: Path, name: str) -> Iterator[dict[str, Any]]:
    """Yield the rows of a run; one without an id holds what runs when a process starts."""
    for part in sorted((home / "record" / name).glob("*.jsonl")):
        for line in part.read_text(encoding="utf-8").splitlines():
            yield json.loads(line)


def blocks_of(row: dict[str, Any]) -> int:
    """Return the blocks that a row's case ran: the bits of a number."""
    packed = row.get("blocks", "")
    return int.from_bytes(zlib.decompress(base64.b64decode(packed)), "little") if packed else 0
