"""What is known of a host, from the answers of its probes: a value that a recording gives as well as a machine."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass, field
from typing import Any, Literal

from .commands import Call, calls_of
from .parsers import parse_probe
from .probe_table import probes_of_xcodes
from .probes import Prober
from .resources import bytes_of

Facts = Mapping[str, Any]
ThreeState = bool | Literal["unknown"]

BYTES_PER_JOB = 2 * 2**30  # the heaviest files of PyTorch take nearly that much each


@dataclass(frozen=True, slots=True, kw_only=True)
class Observation:
    """One probe's answer as facts, with the text it came from."""

    argv: tuple[str, ...]
    facts: Facts
    text: str
    calls: tuple[Call, ...]


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
        return None if self.memory_bytes is None else self.memory_bytes >> 30

    @property
    def jobs(self) -> int:
        """How many compilers may run at a time: one a core, and 2 GB of memory each."""
        by_memory = self.memory_bytes // BYTES_PER_JOB if self.memory_bytes is not None else 1
        return max(1, min(self.cores or 1, by_memory))

    @property
    def developer_dir(self) -> str | None:
        return self.xcode.developer_dir if self.xcode else None

    @property
    def sdk_version(self) -> str | None:
        return self.xcode.sdk_version if self.xcode else self.first("sdk_version")

    @property
    def metal_version(self) -> str | None:
        return self.xcode.metal_version if self.xcode else self.first("metal_version")

    def first(self, key: str, *programs: str) -> Any:
        """Return the first value that an answered probe gives for a key, of certain programs if named."""
        return next(self.every(key, *programs), None)

    def every(self, key: str, *programs: str) -> Iterator[Any]:
        """Yield each value that an answered probe gives for a key."""
        return _values(self.observations, key, *programs)

    def was_asked(self, *programs: str) -> bool:
        """Say whether a probe of one of these programs was answered at all."""
        return any(call.program in programs for row in self.observations for call in row.calls)

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
        document["xcode"] = asdict(self.xcode) if self.xcode else None
        document["xcodes"] = [asdict(xcode) for xcode in self.xcodes]
        return document


def observe(prober: Prober) -> Host:
    """Return what a prober's answers tell of its host; further Xcodes are asked once they are found."""
    prober.ask(prober.standard())
    rows = _observations(prober)
    chosen = next(_values(rows, "developer_dir", "xcode-select"), None)
    paths = {entry["path"] for entries in _values(rows, "xcodes") for entry in entries}
    others = sorted(path for path in paths if not str(chosen or "").startswith(f"{path}/"))
    if others:
        prober.ask(probes_of_xcodes(others, proof=False))
        prober.ask(probes_of_xcodes(_distinct(_xcodes(_observations(prober), chosen)), proof=True))
        rows = _observations(prober)
    return _host(rows, prober, chosen)


def _distinct(xcodes: tuple[Xcode, ...]) -> list[str]:
    """Return the paths of Xcodes beside the chosen one, one per build: links name the same one twice."""
    builds = {xcode.build for xcode in xcodes if xcode.chosen}
    paths = []
    for xcode in xcodes:
        if not xcode.chosen and xcode.developer_dir and xcode.build not in builds:
            builds.add(xcode.build)
            paths.append(xcode.developer_dir.removesuffix("/Contents/Developer"))
    return paths


def _observations(prober: Prober) -> tuple[Observation, ...]:
    rows = []
    for answer, env in prober.answers():
        facts = parse_probe(answer.argv, answer.stdout, answer.stderr, answer.exit, env)
        words = [f"{name}={value}" for name, value in env.items()] + list(answer.argv)
        text = "\n".join(part.strip() for part in (answer.stdout, answer.stderr) if part.strip())
        rows.append(Observation(argv=answer.argv, facts=facts, text=text, calls=calls_of(words)))
    return tuple(rows)


def _values(rows: tuple[Observation, ...], key: str, *programs: str) -> Iterator[Any]:
    for row in rows:
        asked = not programs or any(call.program in programs for call in row.calls)
        if asked and row.facts.get(key) is not None:
            yield row.facts[key]


def _host(rows: tuple[Observation, ...], prober: Prober, chosen: str | None) -> Host:
    def first(key: str, *programs: str) -> Any:
        return next(_values(rows, key, *programs), None)

    apple_silicon = _three_state(_values(rows, "apple_silicon"))
    xcodes = _xcodes(rows, chosen)
    system = prober.system() or first("system") or "Darwin"
    gigabytes = first("memory_gb")
    return Host(
        system=system,
        arch=_python_arch(rows) or first("arch"),
        # sw_vers and the file are asked as system tools are; Python's word may be a compatibility answer.
        macos=first("macos", "sw_vers", "cat", "sysctl", "system_profiler") or first("macos"),
        build=first("build", "sw_vers", "cat", "system_profiler"),
        macos_beta=first("beta", "sw_vers", "cat"),
        chip=first("chip", "sysctl") or first("chip"),
        apple_silicon=apple_silicon,
        virtual=_three_state(_values(rows, "virtual")),
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


def _three_state(values: Iterator[Any]) -> ThreeState:
    """One sure sign decides; a sign of the contrary counts only where there is none."""
    seen = list(values)
    return True if True in seen else False if False in seen else "unknown"


def _python_arch(rows: tuple[Observation, ...]) -> str | None:
    return next((row.facts["arch"] for row in rows if row.facts.get("arch") and _is_python(row)), None)


def _is_python(row: Observation) -> bool:
    return any(call.program.startswith("python") for call in row.calls)


def _rosetta(rows: tuple[Observation, ...], apple_silicon: ThreeState) -> ThreeState:
    """Tell whether the shell or the Python is translated: an x86_64 Python on Apple silicon is, whatever the shell."""
    x86_python = _python_arch(rows) == "x86_64" or any(
        row.facts.get("archs") == ["x86_64"] and "python" in " ".join(row.argv) for row in rows
    )
    if apple_silicon is True and x86_python:
        return True
    return _three_state(_values(rows, "rosetta"))


def _free_bytes(rows: tuple[Observation, ...]) -> int | None:
    for row in rows:
        if any(call.program == "df" for call in row.calls):
            if isinstance(row.facts.get("free_bytes"), int):
                return int(row.facts["free_bytes"])
            if isinstance(row.facts.get("free"), str) and (free := bytes_of(row.facts["free"])) is not None:
                return free
    return None


def _xcodes(rows: tuple[Observation, ...], chosen: str | None) -> tuple[Xcode, ...]:
    """Return every Xcode that answered, the chosen one first; each fact belongs to the directory it was asked under."""
    by_directory: dict[str | None, list[Observation]] = {}
    for row in rows:
        directories = [call.environ.get("DEVELOPER_DIR") for call in row.calls if call.environ.get("DEVELOPER_DIR")]
        by_directory.setdefault(directories[0] if directories else None, []).append(row)
    found = []
    for directory, its_rows in by_directory.items():
        own = tuple(its_rows)
        version = next(_values(own, "version", "xcodebuild"), None)
        if version is not None:
            standards = next(_values(own, "metal_standards"), None)
            found.append(
                Xcode(
                    version=version,
                    build=next(_values(own, "build", "xcodebuild"), None),
                    beta=next(_values(own, "beta", "xcodebuild"), None),
                    developer_dir=directory or chosen,
                    chosen=directory is None,
                    sdk_version=next(_values(own, "sdk_version"), None),
                    metal_version=next(_values(own, "metal_version"), None),
                    metal_standards=None if standards is None else tuple(standards),
                    metal_error=_metal_error(own),
                )
            )
    return tuple(sorted(found, key=lambda xcode: not xcode.chosen))


def _metal_error(rows: tuple[Observation, ...]) -> str | None:
    """Return why the Metal compiler did not run, where it was asked to (finding a path proves nothing)."""
    for row in rows:
        if row.facts.get("error") and any(call.program in ("metal", "metallib") for call in row.calls):
            return str(row.facts["error"])
    return next((str(value) for value in _values(rows, "error") if str(value).startswith("metal_")), None)
