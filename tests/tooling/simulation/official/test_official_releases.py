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
    type_lacks = (
        "differs bfloat16 TypeError: Trying to convert BFloat16 to the MPS backend but it does not have support"
    )
    cpu = _run(3, "training ok", "arrays ok")
    whole = _run(3, lacks, type_lacks, "operators Traceback (most recent call last):", "training ok", "end ok")
    worse = _run(
        134,
        lacks,
        "differs sort other values",
        "operators Traceback (most recent call last):",
        said="a\nqemu: Aborted\n",
    )
    facts = {**_FACTS, "not_provided": [["_kqueue", "/usr/lib/libSystem.B.dylib"]]}

    assert cells_of("2.6.0", _FACTS, cpu, whole, 95.4) == (
        "| 2.6.0 | 3.11 | 549 | 2 | 2 of 2 | 43 of 43 | solve, bfloat16 | none | 95 |\n"
    )
    assert cells_of("2.6.0", facts, cpu, worse, 95.4) == (
        "| 2.6.0 | 3.11 | 549 | 2 | 2 of 2 | 43 of 44 | solve | sort (other values); ended with 134: qemu: Aborted; "
        "_kqueue is not provided | 95 |\n"
    )
