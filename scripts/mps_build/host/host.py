"""What is known of a host, from the answers of its probes: a value that a recording gives as well as a machine.

Every Xcode answered under its own developer directory; one becomes the toolchain of a build by DEVELOPER_DIR, so that
the machine stays as it is for others.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from dataclasses import asdict, dataclass, field
from typing import Any, Literal

from mps_build.common.environment import Toolchain
from mps_build.common.errors import UsageError

from .macos.resources import bytes_of
from .macos.versions import is_beta_macos
from .probes.probers import Observation, Prober, observations, values
from .probes.table import PROBES, probes_of_xcodes, proofs_of_xcodes


@dataclass(frozen=True, slots=True, kw_only=True)
class Xcode:
    """One Xcode, as it answered under its own developer directory (None: the chosen one's is not recorded)."""

    version: str
    build: str | None
    beta: bool | None
    developer_dir: str | None
    chosen: bool
    sdk_version: str | None = None
    metal_version: str | None = None
    metal_standards: tuple[str, ...] | None = None
    metal_error: str | None = None

    def document(self) -> dict[str, Any]:
        """Return the Xcode as JSON; a user's name is taken out of its path."""
        return asdict(self) | {"developer_dir": without_owner(self.developer_dir)}


def without_owner(path: str | None) -> str | None:
    """Return a path without the name of whose home it lies in."""
    return None if path is None else re.sub(r"^/Users/[^/]+", "/Users/user", path)


def xcodes_of(rows: tuple[Observation, ...], chosen: str | None) -> tuple[Xcode, ...]:
    """Return every Xcode that answered, the chosen one first; each fact belongs to the directory it was read under."""
    by_directory: dict[str | None, list[Observation]] = {}
    for row in rows:
        directories = [call.environ.get("DEVELOPER_DIR") for call in row.calls if call.environ.get("DEVELOPER_DIR")]
        by_directory.setdefault(directories[0] if directories else None, []).append(row)
    found = []
    for directory, its_rows in by_directory.items():
        own = tuple(its_rows)
        version = next(values(own, "version", "xcodebuild"), None)
        if version is not None:
            standards = next(values(own, "metal_standards"), None)
            found.append(
                Xcode(
                    version=version,
                    build=next(values(own, "build", "xcodebuild"), None),
                    beta=next(values(own, "beta", "xcodebuild"), None),
                    developer_dir=directory or chosen,
                    chosen=directory is None,
                    sdk_version=next(values(own, "sdk_version"), None),
                    metal_version=next(values(own, "metal_version"), None),
                    metal_standards=None if standards is None else tuple(standards),
                    metal_error=_metal_error(own),
                )
            )
    return tuple(sorted(found, key=lambda xcode: not xcode.chosen))


def _metal_error(rows: tuple[Observation, ...]) -> str | None:
    """Return why the Metal compiler did not run, where that was tried (finding a path proves nothing)."""
    for row in rows:
        if row.facts.get("error") and any(call.program in ("metal", "metallib") for call in row.calls):
            return str(row.facts["error"])
    return next((str(value) for value in values(rows, "error") if str(value).startswith("metal_")), None)


def distinct(xcodes: tuple[Xcode, ...]) -> list[str]:
    """Return the paths of Xcodes beside the chosen one, one per build: links name the same one two times."""
    builds = {xcode.build for xcode in xcodes if xcode.chosen}
    paths = []
    for xcode in xcodes:
        if not xcode.chosen and xcode.developer_dir and xcode.build not in builds:
            builds.add(xcode.build)
            paths.append(xcode.developer_dir.removesuffix("/Contents/Developer"))
    return paths


ThreeState = bool | Literal["unknown"]

_FEW = 3
BYTES_PER_JOB = 2 * 2**30  # the heaviest files of PyTorch take nearly that much each


@dataclass(frozen=True, slots=True, kw_only=True)
class Host:
    """A machine as far as it is known. None and "unknown" mean that no answered probe tells."""

    system: str
    arch: str | None
    macos: str | None
    build: str | None
    macos_beta: bool | None
    chip: str | None
    apple_silicon: ThreeState
    virtual: ThreeState
    rosetta: ThreeState
    model: str | None
    gpu_cores: int | None
    cores: int | None
    memory_bytes: int | None
    free_bytes: int | None
    python: str | None
    xcode: Xcode | None
    xcodes: tuple[Xcode, ...]
    observations: tuple[Observation, ...] = field(repr=False, compare=False)
    recorded_on: str | None = None

    @property
    def memory_gb(self) -> int | None:
        """Memory in whole GiB; None if it is unknown."""
        return None if self.memory_bytes is None else self.memory_bytes >> 30

    @property
    def jobs(self) -> int:
        """How many compilers may run at a time: one a core, and 2 GB of memory each."""
        by_memory = self.memory_bytes // BYTES_PER_JOB if self.memory_bytes is not None else 1
        return max(1, min(self.cores or 1, by_memory))

    @property
    def developer_dir(self) -> str | None:
        """The chosen Xcode's developer directory; None without one."""
        return self.xcode.developer_dir if self.xcode else None

    @property
    def sdk_version(self) -> str | None:
        """The macOS SDK's version, of the chosen Xcode or else as a probe said it."""
        return self.xcode.sdk_version if self.xcode else self.first("sdk_version")

    @property
    def metal_version(self) -> str | None:
        """The Metal compiler's version, of the chosen Xcode or else as a probe said it."""
        return self.xcode.metal_version if self.xcode else self.first("metal_version")

    def first(self, key: str, *programs: str) -> Any:
        """Return the first value that an answered probe gives for a key, of certain programs if named."""
        return next(self.every(key, *programs), None)

    def every(self, key: str, *programs: str) -> Iterator[Any]:
        """Yield each value that an answered probe gives for a key."""
        return values(self.observations, key, *programs)

    def was_answered(self, *programs: str) -> bool:
        """Say whether a probe of one of these programs gave any fact."""
        return any(_tells(row) for row in self.observations if any(call.program in programs for call in row.calls))

    def document(self) -> dict[str, Any]:
        """Return what receipts and `--json` hold of a host: nothing that names a person or a machine."""
        names = (
            "system",
            "arch",
            "macos",
            "build",
            "chip",
            "apple_silicon",
            "virtual",
            "rosetta",
            "model",
            "gpu_cores",
            "cores",
            "memory_bytes",
            "memory_gb",
            "jobs",
            "free_bytes",
            "python",
            "developer_dir",
            "sdk_version",
            "metal_version",
        )
        document: dict[str, Any] = {name: getattr(self, name) for name in names}
        document["developer_dir"] = without_owner(self.developer_dir)
        document["xcode"] = self.xcode.document() if self.xcode else None
        document["xcodes"] = [xcode.document() for xcode in self.xcodes]
        return document


def observe(prober: Prober) -> Host:
    """Return what a prober's answers tell of its host; further Xcodes are queried beside the rest once they are found.

    Raises:
        UsageError: a recording without one answer that tells anything: no verdict may rest on it.
    """
    prober.ask([probe for probe in prober.standard() if probe.name in ("developer_dir", "xcode_paths", "applications")])
    rows = observations(prober)
    if prober.recorded_on is not None and not any(_tells(row) for row in rows):
        raise UsageError(
            f"the recording has no answer that this tool reads (it holds {len(rows)} probes)",
            hint="a recording is made on a Mac by: nox -s doctor -- --record FILE",
        )
    chosen = next(values(rows, "developer_dir", "xcode-select"), None)
    paths = {entry["path"] for entries in values(rows, "xcodes") for entry in entries}
    others = sorted(path for path in paths if not str(chosen or "").startswith(f"{path}/"))
    # A few are queried everything at once; many (links among them) first who they are.
    few = len(others) <= _FEW
    prober.ask([*prober.standard(), *probes_of_xcodes(others), *(proofs_of_xcodes(others) if few else ())])
    rows = observations(prober)
    if not few:
        prober.ask(proofs_of_xcodes(distinct(xcodes_of(rows, chosen))))
    if "metal_toolchain_missing" in set(values(rows, "error")):
        prober.ask([probe for probe in PROBES if probe.name == "component"])
    return _host(observations(prober), prober, chosen)


def _host(rows: tuple[Observation, ...], prober: Prober, chosen: str | None) -> Host:
    def first(key: str, *programs: str) -> Any:
        return next(values(rows, key, *programs), None)

    apple_silicon = _three_state(values(rows, "apple_silicon"))
    xcodes = xcodes_of(rows, chosen)
    system = prober.system() or first("system") or "Darwin"
    gigabytes = first("memory_gb")
    build = first("build", "sw_vers", "cat", "sysctl", "system_profiler")
    return Host(
        system=system,
        arch=_python_arch(rows) or first("arch"),
        # sw_vers and the file are queried as system tools are; Python's word may be a compatibility answer.
        macos=first("macos", "sw_vers", "cat", "sysctl", "system_profiler") or first("macos") or first("os"),
        build=build,
        macos_beta=None if build is None else is_beta_macos(build),
        chip=first("chip", "sysctl") or first("chip"),
        apple_silicon=apple_silicon,
        virtual=_three_state(values(rows, "virtual")),
        rosetta=_rosetta(rows, apple_silicon),
        model=first("model"),
        gpu_cores=first("gpu_cores"),
        cores=first("cpu_cores"),
        memory_bytes=first("memory_bytes") or (gigabytes * 2**30 if gigabytes else None),
        free_bytes=_free_bytes(rows),
        python=first("python"),
        xcode=next((xcode for xcode in xcodes if xcode.chosen), None),
        xcodes=xcodes,
        observations=rows,
        recorded_on=prober.recorded_on,
    )


def _tells(row: Observation) -> bool:
    return bool(row.facts.keys() - {"noise", "not_understood", "timed_out"})


def _three_state(values: Iterator[Any]) -> ThreeState:
    """One sure sign decides; a sign of the contrary counts only where there is none."""
    seen = list(values)
    return True if True in seen else False if False in seen else "unknown"


def _python_arch(rows: tuple[Observation, ...]) -> str | None:
    return next((row.facts["arch"] for row in rows if row.facts.get("arch") and _is_python(row)), None)


def _is_python(row: Observation) -> bool:
    return any(call.program.startswith("python") for call in row.calls)


def _rosetta(rows: tuple[Observation, ...], apple_silicon: ThreeState) -> ThreeState:
    """Tell whether the shell or the Python is translated: what looks like x86_64 on Apple silicon is.

    Alone each of these proves nothing; beside a sure sign of Apple silicon each proves translation.
    """
    if apple_silicon is True and any(_looks_like_x86(row) for row in rows):
        return True
    return _three_state(values(rows, "rosetta"))


def _looks_like_x86(row: Observation) -> bool:
    programs = {call.program for call in row.calls}
    if row.facts.get("archs") == ["x86_64"]:
        return "python" in " ".join(row.argv)
    if "sysctl" in programs:
        # hw.cputype 7, or a name that only x86_64 processes see.
        return row.facts.get("rosetta") == "unknown" and row.facts.get("apple_silicon") == "unknown"
    return row.facts.get("arch") == "x86_64" and ("uname" in programs or _is_python(row))


def _free_bytes(rows: tuple[Observation, ...]) -> int | None:
    for row in rows:
        if any(call.program == "df" for call in row.calls):
            if isinstance(row.facts.get("free_bytes"), int):
                return int(row.facts["free_bytes"])
            if isinstance(row.facts.get("free"), str) and (free := bytes_of(row.facts["free"])) is not None:
                return free
    return None


def xcode_toolchain(host: Host) -> Toolchain:
    """Return what the host's Xcode adds to the environment of a build.

    Compilers are named by their path: a bare `clang` may be Homebrew's
    (https://github.com/pytorch/executorch/issues/18340).
    """
    variables = {"CC": "/usr/bin/clang", "CXX": "/usr/bin/clang++"}
    reasons = dict.fromkeys(variables, "Apple's, by path: a bare name may be Homebrew's or conda's")
    if host.developer_dir is not None:
        variables["DEVELOPER_DIR"] = host.developer_dir
        reasons["DEVELOPER_DIR"] = "chooses the Xcode for this build alone"
    xcode = host.xcode
    facts = {
        "xcode": f"{xcode.version} {xcode.build or ''}".strip() if xcode else None,
        "sdk": host.sdk_version,
        "metal": host.metal_version,
    }
    return Toolchain(
        name="xcode",
        variables=variables,
        reasons=reasons,
        facts={name: value for name, value in facts.items() if value is not None},
    )


def use_xcode(host: Host) -> None:
    """Let every program that this process starts use the host's Xcode, as the compilers do.

    git, otool, install_name_tool and codesign in /usr/bin are shims, each of which asks for the chosen Xcode: with
    none chosen for the machine they fail, though `DEVELOPER_DIR` or /Applications names one.
    """
    if host.developer_dir is not None:
        os.environ["DEVELOPER_DIR"] = host.developer_dir
