"""`audit_wheel` in a process of its own, with a limit on its memory."""

from __future__ import annotations

import os
import resource
import sys
import time
from pathlib import Path

from mps_build.cli import main
from mps_build.commands import audit_wheel  # imported here, where it is shared by all forks


def audit_within(wheel: Path, folder: Path, address_space: int) -> None:
    """Run the command within so many bytes of address space, and end with its status.

    `folder` gets what is printed (stdout, stderr), audit.json, and the seconds of processor time: what a busy machine
    makes of them is not the wheel's.
    """
    resource.setrlimit(resource.RLIMIT_AS, (address_space, address_space))
    for descriptor, name in ((1, "stdout"), (2, "stderr")):
        os.dup2(os.open(folder / name, os.O_WRONLY | os.O_CREAT), descriptor)
    began = time.process_time()
    status = main(audit_wheel.__name__.rpartition(".")[2], [str(wheel), "--json", str(folder / "audit.json")])
    (folder / "seconds").write_text(str(time.process_time() - began), encoding="utf-8")
    sys.exit(status)
