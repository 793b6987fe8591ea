"""What is known of a host, from the answers of its probes: a value that a recording gives as well as a machine."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any, Literal

from mps_build.common.errors import UsageError

from .installed_xcodes import Xcode, distinct, without_owner, xcodes_of
from .macos.resources import bytes_of
from .macos.versions import is_beta_macos
from .probes.observation import Observation, observations, values
from .probes.probers import Prober
from .probes.table import PROBES, probes_of_xcodes, proofs_of_xcodes

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
    """Return what a prober's answers tell of its host; further Xcodes are asked beside the rest once they are found.

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
    # A few are asked everything at once; many (links among them) first who they are.
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
        # sw_vers and the file are asked as system tools are; Python's word may be a compatibility answer.
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
