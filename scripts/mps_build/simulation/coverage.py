"""What a simulated release covers: how many selectors, operators and kernels of those that its back end needs."""

from __future__ import annotations

import json
import os
from dataclasses import dataclass
from typing import Any

from mps_build.common.errors import OwnFault
from mps_build.common.process import Command, capture

from .builder.build import Built
from .session import simulated_environ

# Asked of the library by the interpreter that loads it: which classes have which methods, what torch registers.
_ASK = """
import ctypes, json, sys
import torch
library = ctypes.CDLL("libmps_simulated.so")
library.sim_selectors.restype = ctypes.c_char_p
needed, implemented = json.loads(library.sim_selectors())
names = torch._C._dispatch_get_registrations_for_dispatch_key("MPS")
print(json.dumps({"needed": needed, "implemented": implemented, "registrations": len(names)}))
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Coverage:
    """Counts; `missing` names the selectors that no class has."""

    needed: int
    missing: tuple[str, ...]
    registrations: int

    @property
    def implemented(self) -> int:
        """How many of the needed selectors some class has."""
        return self.needed - len(self.missing)


def measure(built: Built, *, macos: str) -> Coverage:
    """Return what a built simulation covers.

    Raises:
        OwnFault: its library does not load.
    """
    environ = simulated_environ(built, macos=macos, environ=os.environ)
    argv = (str(built.root.python), "-c", _ASK)
    answer = capture(Command(argv=argv, environ=environ), timeout_seconds=300)
    if not answer.ok:
        said = (answer.stderr.strip().splitlines() or [f"exit {answer.exit}"])[-1]
        raise OwnFault(
            f"the simulated device does not load: {said}", hint=f"try: {built.root.python} -c 'import torch'"
        )
    found: dict[str, Any] = json.loads(answer.stdout)
    missing = sorted(set(found["needed"]) - set(found["implemented"]))
    return Coverage(needed=len(found["needed"]), missing=tuple(missing), registrations=found["registrations"])
