"""Keeps what a whole rehearsal found and used: its `--json` document, and optionally that of the run after an edit.

nox -s benchmark -- rehearsal WHOLE.json [--after-edit EDITED.json]
"""

from __future__ import annotations

import argparse
import json
from pathlib import Path
from typing import Any

from shared.record import record

COMMAND = "nox -s rehearse -- v2.6.0 --darwin --wheel"


def main() -> None:
    """Put the rows into results.json."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("whole", type=Path, help="the --json of a rehearsal with --darwin --wheel that ended with 0")
    parser.add_argument("--after-edit", type=Path, help="that of the same command after an edit of one .mm")
    options = parser.parse_args()
    for name, value, unit, target in rows(_read(options.whole)):
        print(record(name, [value], unit=unit, command=COMMAND, target=target))
    if options.after_edit:
        used = float(_read(options.after_edit)["cpu_seconds"])
        print(record("rehearsal.edit_cpu_s", [used], unit="CPU s", command=COMMAND, target="<= 120"))


def rows(document: dict[str, Any]) -> list[tuple[str, float, str, str]]:
    """Return (name, value, unit, target) of a finished whole rehearsal."""
    parts = {each["part"]: each for each in document["parity"]["parts"]}
    selectors, registrations = parts["selectors"], parts["MPS registrations"]
    return [
        ("rehearsal.mm_files", document["objective_files"], "files", ">= 69"),
        ("rehearsal.selectors_equal", selectors["both"] / selectors["official"], "ratio", "1"),
        ("rehearsal.registrations_equal", registrations["both"] / registrations["official"], "ratio", "1"),
        ("rehearsal.unexplained", document["parity"]["unexplained"], "names", "<= 0"),
        ("rehearsal.whole_cpu_s", document["whole_cpu_seconds"]["all"], "CPU s", "<= 5000"),
    ]


def _read(path: Path) -> dict[str, Any]:
    document: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
    if document.get("exit_code") != 0:
        raise SystemExit(f"{path}: that run did not end with 0")
    return document


if __name__ == "__main__":
    main()
