"""Figures of a whole rehearsal, from what it wrote: `nox -s benchmark -- whole_rehearsal RESULT.json`.

RESULT.json is of `nox -s rehearse -- v2.6.0 --darwin --wheel --json RESULT.json`, from an empty work folder.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path

from record import record

_COMMAND = (
    "nox -s rehearse -- {recipe} --darwin --wheel --json RESULT.json; nox -s benchmark -- whole_rehearsal RESULT.json"
)


def main(path: Path) -> None:
    document = json.loads(path.read_text(encoding="utf-8"))
    command = _COMMAND.format(recipe=document["recipe"])
    parts = {part["part"]: part for part in document["parity"]["parts"]}
    rows = (
        ("rehearsal.mm_files", document["objective_files"], "files", "69 of 69"),
        ("rehearsal.selectors_equal", _share(parts["selectors"]), "share", "1, or each difference with its reason"),
        ("rehearsal.registrations_equal", _share(parts["MPS registrations"]), "share", "1, or each with its reason"),
        ("rehearsal.whole_cpu_s", document["whole_cpu_seconds"]["all"], "s", "<= 5000"),
    )
    for name, value, unit, target in rows:
        print(record(name, [value], unit=unit, command=command, target=target))


def _share(part: dict[str, int]) -> float:
    return part["both"] / part["official"]


if __name__ == "__main__":
    main(Path(sys.argv[1]))
