"""The table of releases: what a release lacks is not there, what differs from the CPU fails."""

from __future__ import annotations

import subprocess
from typing import Any

from official_releases import cells_of

_FACTS: dict[str, Any] = {
    "python": "3.11",
    "imports": {"same": 400, "translated": 149},
    "selectors": {"needed": 300, "implemented": 298},
    "not_provided": [],
}


def _run(status: int, *lines: str, said: str = "") -> subprocess.CompletedProcess[str]:
    return subprocess.CompletedProcess((), status, stdout="".join(f"{line}\n" for line in lines), stderr=said)


def test_an_operator_that_a_release_lacks_is_not_there_and_one_that_differs_fails() -> None:
    lacks = (
        "differs solve NotImplementedError: 'aten::_linalg_solve_ex' is not currently implemented for the MPS device"
    )
    cpu = _run(3, "training ok", "arrays ok")
    whole = _run(3, lacks, "operators Traceback (most recent call last):", "training ok", "end ok")
    worse = _run(
        134,
        lacks,
        "differs sort other values",
        "operators Traceback (most recent call last):",
        said="a\nqemu: Aborted\n",
    )
    facts = {**_FACTS, "not_provided": [["_kqueue", "/usr/lib/libSystem.B.dylib"]]}

    assert cells_of("2.6.0", _FACTS, cpu, whole, 95.4) == (
        "| 2.6.0 | 3.11 | 549 | 2 | 2 of 2 | 44 of 44 | solve | none | 95 |\n"
    )
    assert cells_of("2.6.0", facts, cpu, worse, 95.4) == (
        "| 2.6.0 | 3.11 | 549 | 2 | 2 of 2 | 43 of 44 | solve | sort (other values); ended with 134: qemu: Aborted; "
        "_kqueue is not provided | 95 |\n"
    )
