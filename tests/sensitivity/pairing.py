"""Make tests/device/device_suite/conditions/rows.json: covering arrays over each operator's conditions.

Every pair of conditions meets in a row, and every three of them by their classes (row_classes.py) where at least one is
an argument, as far as a thousand tries an operator reach: `untried` in the reasons counts the others.

python tests/sensitivity/pairing.py [--only NAME,...] [--jobs N]
python tests/sensitivity/choose_rows.py           # which of them the default layers ask

A row is kept only where the CPU answers it, and where a device that is right is called right: one that rounds otherwise
(two units in the last place of every result), and one that chooses otherwise where PyTorch leaves the choice to it
(the order of writes to one place, ties, numbers that an integer cannot hold). What the CPU refuses, what is
ill-conditioned and what has no one answer is not a condition.
"""

from __future__ import annotations

import argparse
import json
import time
import warnings
from pathlib import Path
from typing import Any

import suite_in_process  # noqa: F401 - the device suite comes into reach by it

warnings.filterwarnings("ignore")

import torch  # noqa: E402

from apart import apart  # noqa: E402
from device_suite.conditions.listed import ROWS, encode, signature, stored_rows, turned  # noqa: E402
from engine.description import Operator  # noqa: E402
from operators import tables  # noqa: E402
from row_making import Pairing  # noqa: E402


def made(name: str, kept: list[str], cover: bool) -> tuple[dict[str, Any], dict[str, Any]]:
    """Return one operator's stored form, and what its rows took: seconds, what was refused and why."""
    torch.set_num_threads(1)
    begun = time.process_time()
    spec = {name: spec for table in tables() for name, spec in table.operators.items()}[name]
    pairing = Pairing(spec)
    pairing.keep(kept)
    pairing.make(cover=cover)
    texts = sorted({encode(spec, row) for row in pairing.rows})
    reasons = {
        "rows": len(texts),
        "dropped": pairing.dropped,
        "untried": pairing.untried,
        "seconds": round(time.process_time() - begun, 1),
        "why": pairing.refused,
        "lost": pairing.lost,
    }
    return {"factors": signature(spec), "rows": " ".join(texts)}, reasons


def _kept(stored: dict[str, Any], spec: Operator, add: bool) -> list[str]:
    rows = stored.get(spec.name, {"factors": [], "rows": ""})
    every = [*rows["rows"].split(), *rows.get("more", "").split()]
    return every if add and rows["factors"] == signature(spec) else []


def save_rows(stored: dict[str, Any]) -> None:
    """Write the rows, one operator a line."""
    lines = [f"{json.dumps(name)}: {json.dumps(turned(rows))}" for name, rows in sorted(stored.items())]
    beside = ROWS.with_suffix(".new")
    beside.write_text("{\n" + ",\n".join(lines) + "\n}\n", encoding="utf-8")
    beside.replace(ROWS)


def main() -> None:
    """Run the command."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", default="", help="these operators; the others keep their rows")
    parser.add_argument("--missing", action="store_true", help="operators without rows of their present description")
    parser.add_argument("--add", action="store_true", help="keep the rows that are still right, and add what they lack")
    parser.add_argument("--check", action="store_true", help="drop the rows that are no longer right; add none")
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--reasons", metavar="FILE", help="why rows were refused")
    given = parser.parse_args()
    stored = dict(stored_rows())
    specs = {name: spec for table in tables() for name, spec in table.operators.items()}
    stored = {name: rows for name, rows in stored.items() if name in specs}
    wanted = [one for one in given.only.split(",") if one] or list(specs)
    if given.missing:
        wanted = [name for name, spec in specs.items() if stored.get(name, {}).get("factors") != signature(spec)]
    reasons: dict[str, Any] = {}
    given_of = {name: (name, _kept(stored, specs[name], given.add or given.check), not given.check) for name in wanted}
    for name, answer in apart(made, given_of, jobs=given.jobs):
        if answer is None:
            print(f"{name}: the CPU crashed here", flush=True)
            continue
        stored[name], reasons[name] = answer
        if len(reasons) % 20 == 0:
            save_rows(stored)
        if reasons[name]["rows"] < 10:
            print(f"{name}: {reasons[name]}", flush=True)
    save_rows(stored)
    if given.reasons:
        Path(given.reasons).write_text(json.dumps(reasons, indent=1), encoding="utf-8")


if __name__ == "__main__":
    main()
