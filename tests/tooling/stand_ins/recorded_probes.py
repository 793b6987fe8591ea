"""Probes of an imagined Mac, one by one: a host is judged by any choice of them."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from typing import Any

from mps_build.common.recipe import catalogue as recipe_files
from mps_build.host.host import Host, observe
from mps_build.host.macos.metal import PROOF_MARK
from mps_build.host.probes.probers import RecordedProber
from mps_build.host.probes.table import METAL_PROOF
from mps_build.host.recordings.recording import recording_of
from mps_build.host.requirements.findings import Finding
from mps_build.host.requirements.inspect import inspect
from specimen_judge import specimens

HOSTS = specimens("hosts")
Probe = dict[str, Any]


find_recipe = cache(recipe_files.find_recipe)


all_recipes = cache(recipe_files.all_recipes)


CLT = (
    "xcode-select: error: tool 'xcodebuild' requires Xcode, but active developer directory "
    "'/Library/Developer/CommandLineTools' is a command line tools instance\n"
)


METAL_MISSING = (
    "error: cannot execute tool 'metal' due to missing Metal Toolchain; "
    "use: xcodebuild -downloadComponent MetalToolchain\n"
)


def answered(*argv: str, stdout: str = "", stderr: str = "", exit: int | None = 0) -> Probe:
    return {"argv": list(argv), "stdout": stdout, "stderr": stderr, "exit": exit}


def under(path: str, *argv: str, **answer: Any) -> Probe:
    return answered("env", f"DEVELOPER_DIR={path}/Contents/Developer", *argv, **answer)


MAC = (
    answered("sw_vers", stdout="ProductName:\t\tmacOS\nProductVersion:\t\t26.4\nBuildVersion:\t\t25E246\n"),
    answered(
        "uname",
        "-a",
        stdout="Darwin mac.local 25.4.0 Darwin Kernel Version 25.4.0: Thu Mar 19 19:28:14 PDT 2026; "
        "root:xnu-12377.101.15~1/RELEASE_ARM64_T8132 arm64\n",
    ),
    answered(
        "sysctl",
        "hw.memsize",
        "hw.cputype",
        "hw.physicalcpu",
        "machdep.cpu.brand_string",
        stdout="hw.memsize: 25769803776\nhw.cputype: 16777228\nhw.physicalcpu: 10\n"
        "machdep.cpu.brand_string: Apple M4\n",
    ),
)


XCODE_26 = (
    answered("xcodebuild", "-version", stdout="Xcode 26.5\nBuild version 17F42\n"),
    answered("xcode-select", "-p", stdout="/Applications/Xcode_26.5.app/Contents/Developer\n"),
    answered("xcrun", "--sdk", "macosx", "--show-sdk-version", stdout="26.5\n"),
)


PROVED = answered("sh", "-c", METAL_PROOF, stdout=f"{PROOF_MARK} metal3.1\n{PROOF_MARK} metal4.0\n")


def host_of(*probes: Probe) -> Host:
    return observe(RecordedProber(recording_of({"probes": list(probes)}, name="a recording")))


def findings_of(probes: Sequence[Probe], recipe: str = "v2.15.0") -> dict[str, Finding]:
    return {finding.id: finding for finding in inspect(host_of(*probes), find_recipe(recipe))}
