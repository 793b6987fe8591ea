"""Every way a run can end badly: one class per cause, one exit code per class.

The codes are a contract with callers (workflows, fleets, shell scripts): README, "Exit codes".
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar


class MpsBuildError(Exception):
    """Base of every error a user may see.

    Args:
        message: what is wrong, with the value and the place.
        hint: what to do about it, as a command where there is one.
        document: what is known all the same; it joins the `--json` document.
    """

    exit_code: ClassVar[int]
    cause: ClassVar[str]

    def __init__(self, message: str, *, hint: str | None = None, document: Mapping[str, Any] | None = None) -> None:
        super().__init__(message)
        self.hint = hint
        self.document = dict(document or {})


class UsageError(MpsBuildError):
    """The command line, a recipe or a data file says something that cannot be done."""

    exit_code = 2
    cause = "usage"


class HostError(MpsBuildError):
    """This machine cannot build or run the recipe."""

    exit_code = 3
    cause = "host"


class SourceError(MpsBuildError):
    """The source could not be had, or is not what the recipe pins."""

    exit_code = 4
    cause = "source"


class PatchError(MpsBuildError):
    """A patch does not fit the tree it is for."""

    exit_code = 5
    cause = "patch"


class BuildEnvironmentError(MpsBuildError):
    """The build environment could not be made."""

    exit_code = 6
    cause = "environment"


class GateError(MpsBuildError):
    """Configure came out other than the recipe asks: a build would be worth nothing."""

    exit_code = 7
    cause = "gate"


class CompileError(MpsBuildError):
    """The build itself failed."""

    exit_code = 8
    cause = "compile"


class AuditRejected(MpsBuildError):
    """The wheel is not what its name and its recipe promise."""

    exit_code = 9
    cause = "audit_rejected"


class Regressed(MpsBuildError):
    """The device gives wrong answers that no known issue explains."""

    exit_code = 10
    cause = "regressed"


class KnownIssuesOnly(MpsBuildError):
    """The device gives wrong answers, each of them a known issue."""

    exit_code = 11
    cause = "known_issues_only"


class MpsNotBuilt(MpsBuildError):
    """The torch under test was built without MPS."""

    exit_code = 12
    cause = "mps_not_built"


class MacosTooOld(MpsBuildError):
    """This macOS is older than the one at which this torch's MPS works."""

    exit_code = 13
    cause = "macos_too_old"


class NoGpuSession(MpsBuildError):
    """The process may not reach the GPU: a sandbox, or no session on the screen."""

    exit_code = 14
    cause = "no_gpu_session"


class RosettaError(MpsBuildError):
    """The process is translated by Rosetta; MPS is there and silently wrong."""

    exit_code = 15
    cause = "rosetta"


class VirtualGpu(MpsBuildError):
    """A virtual machine's GPU: no verdict on MPS can be had from it."""

    exit_code = 16
    cause = "virtual_gpu"


class DeviceUnusable(MpsBuildError):
    """The device is there and does not compute."""

    exit_code = 17
    cause = "device_unusable"


class TreeInUse(MpsBuildError):
    """Another build holds this tree."""

    exit_code = 18
    cause = "tree_in_use"


class DiskFull(MpsBuildError):
    """No space is left where the work or the wheel is written."""

    exit_code = 19
    cause = "disk_full"


class OwnFault(MpsBuildError):
    """A part of mps-build itself failed on something it was given."""

    exit_code = 20
    cause = "own_fault"


class RefusedForSafety(MpsBuildError):
    """Going on could run code that may not run here, or publish bytes that nobody checked."""

    exit_code = 21
    cause = "refused_for_safety"


_FULL = ("No space left on device", "[Errno 28]", "Disk quota exceeded", "disk is full", "Not enough disk space")


def disk_full(text: str, *, during: str) -> DiskFull | None:
    """Return the error if what a program said last tells that the disk is full; None if it tells nothing of it."""
    line = next((line.strip() for line in text.splitlines() if any(words in line for words in _FULL)), None)
    if line is None:
        return None
    return DiskFull(
        f"no space left, {during}: {line}",
        hint="free some space (`nox -s clean` lists what this tool uses), then run the same command again",
    )


def reason_of(error: BaseException) -> str:
    """Return why a file could not be read: the system's own words without the error number and the path again."""
    return getattr(error, "strerror", None) or str(error)
