"""The options of every command that takes a torch: which one, on which device, and where the record goes."""

from __future__ import annotations

import argparse
import os
import re
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from mps_build.common.errors import UsageError
from mps_build.common.records.device_record import Simulated
from mps_build.verify.target.interpreter import callers_python

from .nightly_options import add_nightly_options, chosen_nightly
from .numbers import amount
from .trust import add_trust


@dataclass(frozen=True, slots=True, kw_only=True)
class TorchOptions:
    """Which torch is asked, on which device, how it is run, and where the record goes."""

    target: str | None
    nightly: bool
    index: str | None
    python: str | None
    device: str
    plant: str | None
    memory_limit: float | None
    host: Path | None
    record: Path | None
    offline: bool
    trust: bool
    html: Path | None
    given: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class VerdictOptions(TorchOptions):
    """What bears on a verdict of cases, and its other reports."""

    accept: str | None
    allow_virtual: bool
    known_issues: Path | None
    junit: Path | None
    markdown: Path | None


def add_torch_options(parser: argparse.ArgumentParser) -> None:
    """Add what says which torch is asked, on which device."""
    parser.add_argument(
        "target",
        nargs="?",
        metavar="WHEEL_OR_REQUIREMENT",
        help="a .whl file, or torch==2.15.0 (default: the torch of your own environment)",
    )
    add_nightly_options(parser)
    parser.add_argument(
        "--python", metavar="PATH", help="the interpreter under test (with a wheel, a version such as 3.12 will do)"
    )
    parser.add_argument(
        "--device",
        choices=("mps", "cuda", "cpu"),
        default="mps",
        help="the device (default: mps; cpu and cuda only rehearse)",
    )


def add_run_options(parser: argparse.ArgumentParser) -> None:
    """Add how it is run, and where the record goes."""
    parser.add_argument(
        "--plant", metavar="FILE.py:NAME", help="inject a fault into device operations (docs/verify/plants.md)"
    )
    parser.add_argument("--memory-limit", metavar="GB", type=amount, help="memory limit of the process under test")
    parser.add_argument("--host", metavar="FILE", type=Path, help="check a recorded host instead of this one")
    parser.add_argument("--record", metavar="DIR", type=Path, help="folder for the record and the logs")
    parser.add_argument("--offline", action="store_true", help="use no network, only the cache")
    add_trust(parser)
    parser.add_argument("--html", metavar="FILE", type=Path, help="also write a self-contained HTML page")


def add_verdict_options(parser: argparse.ArgumentParser) -> None:
    """Add what bears on a verdict of cases, and its other reports."""
    parser.add_argument("--accept", choices=("known",), help="known: exit with 0 if only known issues failed")
    parser.add_argument("--allow-virtual", action="store_true", help="also run on a virtual Mac (without a verdict)")
    parser.add_argument(
        "--known-issues", metavar="FILE", type=Path, help="use this file instead of the suite's known_issues.yaml"
    )
    parser.add_argument("--junit", metavar="FILE", type=Path, help="also write JUnit XML")
    parser.add_argument("--markdown", metavar="FILE", type=Path, help="also write a summary as Markdown")


def torch_fields(options: TorchOptions, *, simulated: Simulated | None = None) -> dict[str, Any]:
    """Return the fields of a `VerifyRequest` that the first two groups give.

    Args:
        simulated: a device that brings its own Python and torch.

    Raises:
        UsageError: no torch is named and the caller's own Python has none, or a limit is not above 0.
    """
    python, target = options.python, options.target if simulated is None else None
    if options.nightly or options.index:
        target = chosen_nightly(
            target, nightly=options.nightly, index=options.index, pythons=(_version(python),), platform=None
        )[0]
    if target is None and python is None and options.host is None and simulated is None:
        python = str(callers_python(os.environ))
    memory: float | None = options.memory_limit
    if memory is not None and memory <= 0:
        raise UsageError("--memory-limit takes a number above 0")
    return {
        "target": target,
        "python": python,
        "device": options.device,
        "plant": options.plant,
        "memory_bytes": int(memory * 1_000_000_000) if memory is not None else None,
        "host_file": options.host,
        "folder": options.record,
        "offline": options.offline,
        "trust": options.trust,
        "simulated": simulated,
    }


def _version(python: str | None) -> str:
    """Return the Python for which a nightly is wanted: the one named by version, else ours."""
    if python is not None and not re.fullmatch(r"3\.\d+t?", python):
        raise UsageError(
            f"--python {python}: a nightly goes into an environment of its own", hint="name a version: --python 3.12"
        )
    return python or f"{sys.version_info[0]}.{sys.version_info[1]}"


def verdict_fields(options: VerdictOptions) -> dict[str, Any]:
    """Return the fields of a `VerifyRequest` that the last group gives."""
    return {
        "accept_known": options.accept == "known",
        "allow_virtual": options.allow_virtual,
        "known_issues": options.known_issues,
    }


def words(text: str) -> tuple[str, ...]:
    """Return the words of a list such as `resnet50,bert`."""
    return tuple(word.strip() for word in text.split(",") if word.strip())
