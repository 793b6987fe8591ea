"""What is requested: which torch, on which device, how much of the suite."""

from __future__ import annotations

import re
import shlex
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from packaging.requirements import InvalidRequirement, Requirement

from ..common.errors import UsageError
from ..common.files import fault_of
from ..common.known_issues import Where
from ..common.records.device_record import Simulated


@dataclass(frozen=True, slots=True, kw_only=True)
class VerifyRequest:
    """What to verify, on what, and how much of the suite.

    `target` is a wheel's path or a requirement; without it, `python` is an interpreter that has its torch.
    `resume`: the record in `folder` is of an interrupted run of the same question, whose cases are taken over.
    `trust`: run a torch of which the index gives no hash.
    `cases`, `keys` and `seconds` bound the whole suite, 0 leaves it to its default; `seed` draws other cases.
    `skip`: ids or patterns of cases that are not run.
    `any_release`: known issues hold whatever their range of releases says, so that a table can be made of them.
    `simulated`: the device is PyTorch's host code on Linux, or a macOS wheel; neither `target` nor `python` is given.
    """

    target: str | None = None
    python: str | None = None
    device: str = "mps"
    full: bool = False
    quick: bool = False
    only: tuple[str, ...] = ()
    layers: tuple[str, ...] = ()
    cases: int = 0
    keys: int = 0
    seconds: float = 0.0
    seed: int = 0
    op: str | None = None
    skip: tuple[str, ...] = ()
    fault: str | None = None
    accept_known: bool = False
    allow_virtual: bool = False
    offline: bool = False
    trust: bool = False
    case_seconds: float = 120.0
    memory_bytes: int | None = None
    jobs: int | None = None
    host_file: Path | None = None
    folder: Path | None = None
    resume: bool = False
    suite: Path | None = None
    known_issues: Path | None = None
    any_release: bool = False
    simulated: Simulated | None = None

    @property
    def where(self) -> Where:
        """What stands behind an `mps` device."""
        if self.simulated is None:
            return "mac"
        return "official" if self.simulated.official else "simulated"

    @property
    def is_whole(self) -> bool:
        """True if no part of the suite was chosen, and no fault is injected."""
        return not (self.only or self.op or self.layers or self.quick or self.fault)

    @property
    def is_wheel(self) -> bool:
        """True if the target is a file, not a requirement."""
        return self.target is not None and (self.target.endswith(".whl") or "/" in self.target)

    @property
    def requirement(self) -> str:
        """The target as a requirement of torch.

        Raises:
            UsageError: it is not a requirement, or of something else.
        """
        text = self.target or ""
        try:
            requirement = Requirement(text)
        except InvalidRequirement as error:
            raise UsageError(
                f"{text!r} is neither a wheel's path nor a requirement: {error}", hint="for example: torch==2.13.0"
            ) from error
        if requirement.name.lower() != "torch":
            raise UsageError(f"{text!r} asks for {requirement.name}; verify_mps judges torch", hint="torch==2.13.0")
        return str(requirement)

    @property
    def exact_version(self) -> str | None:
        """The version under test, if the request alone says it."""
        if self.simulated is not None:
            return self.simulated.release
        exact = re.fullmatch(r"torch==([\w.+!]+)", (self.target or "").replace(" ", ""))
        return exact[1] if exact else None

    def kernels_command(self, torch: str | None) -> str:
        """Return the command that verifies the same torch's own Metal kernels, which needs no GPU.

        Args:
            torch: the version that was found, if it was reached.

        >>> VerifyRequest(target="torch==2.15.0").kernels_command(None)
        'nox -s verify_kernels -- torch==2.15.0'
        """
        public = (torch or "").partition("+")[0]
        installed = f"torch=={public}" if public and "dev" not in public else "WHEEL"
        return f"nox -s verify_kernels -- {shlex.quote(self.target or installed)}"

    @property
    def absolute_fault(self) -> str | None:
        """The fault with its file's whole path, since the children run elsewhere."""
        if self.fault is None:
            return None
        file, _, name = self.fault.rpartition(":")
        return f"{Path(file).absolute()}:{name}"

    def check_fault(self) -> None:
        """Refuse an injected fault that cannot be loaded, as far as its name tells.

        Raises:
            UsageError: not FILE.py:NAME, or no such file.
        """
        if self.fault is None:
            return
        file, colon, name = self.fault.rpartition(":")
        if not colon or not file or not name:
            raise UsageError(
                f"--inject {self.fault!r} is not of the form FILE.py:NAME", hint="see docs/verify/injected_faults.md"
            )
        if fault := fault_of(Path(file)):
            raise UsageError(f"--inject {file}: {fault}", hint="docs/verify/injected_faults.md says what it holds")

    def named_target(self) -> dict[str, Any]:
        """Return the target as it was named."""
        if self.simulated is not None:
            name = f"torch=={self.simulated.release}" if self.simulated.official else f"v{self.simulated.release}"
            return {"kind": "simulation", "name": name}
        if self.target is None:
            return {"kind": "python", "name": self.python}
        return {"kind": "wheel" if self.is_wheel else "requirement", "name": self.target}

    def selection(self) -> dict[str, Any]:
        """Return what was chosen of the suite."""
        return {
            "full": self.full,
            "quick": self.quick,
            "only": list(self.only),
            "layers": list(self.layers),
            "cases": self.cases,
            "keys": self.keys,
            "seconds": self.seconds,
            "seed": self.seed,
            "op": self.op,
            "inject": self.fault,
            **({"skip": list(self.skip)} if self.skip else {}),
        }

    def statement(self, gpu: Mapping[str, Any]) -> str:
        """Return the first line of every report: what this run can and cannot say."""
        name = gpu.get("name") or self.device
        part = "A chosen part of the suite. " if self.only or self.op or self.layers or self.quick else ""
        if self.fault:
            part = f"A fault was injected ({self.fault}). {part}"
        if self.simulated is not None:
            release = self.simulated.release
            wheel, host_code = f"The macOS wheel of PyTorch {release}", f"PyTorch {release}'s MPS host code"
            return (
                f"{part}{wheel if self.simulated.official else host_code} on Linux, answering as on macOS "
                f"{self.simulated.macos}. A rehearsal: it says nothing about a GPU's numbers, Apple's MPSGraph or time."
            )
        if self.device == "mps":
            return f"{part}MPS on {name}." if gpu else f"{part}MPS, not reached."
        where = "the CPU" if self.device == "cpu" else f"another accelerator ({name})"
        return f"{part}A rehearsal on {where}: it says nothing about MPS."
