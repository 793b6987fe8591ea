"""One closed process that runs kernels in turn: a new one after some of them, and after any that did not pass."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

from ..code.compiled import Code
from ..machine.left import BadReport
from .closed import Ended, Machine, OurFault
from .examine import Verdict

# To start a process and to close it takes as long as to run one kernel.
MOST_KERNELS = 16


class Turns:
    """Who runs the next kernel. What ran before in its process is never what a kernel is blamed for."""

    def __init__(self, server: Path, runtime: Any) -> None:
        self._server, self._runtime = server, runtime
        self._machine: Machine | None = None
        self._count = 0

    def examined(self, codes: dict[str, Code], examine: Callable[[Machine], Verdict]) -> Verdict:
        """Return the verdict on a kernel; one that is not well in a used process is asked again in a new one.

        Args:
            codes: the kernel's, and of those that its programs launch.

        Raises:
            Ended, OurFault, BadReport: a new process ended, or failed.
        """
        if self._machine is not None and self._count < MOST_KERNELS:
            try:
                self._machine.load(codes)
                self._count += 1
                verdict = examine(self._machine)
            except (Ended, OurFault, BadReport):
                verdict = None
            if verdict is not None and _is_well(verdict):
                return verdict
        self.end()
        self._machine, self._count = Machine(self._server, self._runtime, codes), 1
        is_well = False
        try:
            verdict = examine(self._machine)
            is_well = _is_well(verdict)
        finally:
            if not is_well:
                self.end()
        return verdict

    def end(self) -> None:
        """End the process."""
        if self._machine is not None:
            self._machine.close()
        self._machine = None


def _is_well(verdict: Verdict) -> bool:
    return verdict.outcome in ("passed", "not_bound")
