"""The Python that holds a torch: which one is meant, what it says of itself, and the environment it runs in."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from packaging.version import Version

from mps_build.common.cores import THREAD_VARIABLES
from mps_build.common.errors import UsageError
from mps_build.common.files import open_regular
from mps_build.common.json_text import parse_json
from mps_build.common.process import Captured, Command, capture

_HAS_TORCH = "import importlib.util, sys; sys.exit(importlib.util.find_spec('torch') is None)"


def callers_python(environ: Mapping[str, str]) -> Path:
    """Return the interpreter of the caller's own environment that has torch.

    nox puts its session's environment in front; the noxfile passes the caller's on as MPS_BUILD_CALLER_*.

    Raises:
        UsageError: none of them has torch; the message names where it was searched.
    """
    found = list(dict.fromkeys(_candidates(environ)))
    for python in found:
        if capture(Command(argv=(str(python), "-c", _HAS_TORCH)), timeout_seconds=60).ok:
            return python
    names = ", ".join(map(str, found)) or "no Python was found"
    raise UsageError(
        f"no torch was named, and the active environment has none (searched: {names})",
        hint="activate the environment that has torch, or name it: --python PATH, or torch==2.13.0",
    )


def _candidates(environ: Mapping[str, str]) -> Iterator[Path]:
    """Yield the interpreters to ask, in order; those that do not exist are left out."""

    def value(name: str) -> str | None:
        return environ.get(f"MPS_BUILD_CALLER_{name}", environ.get(name))

    for variable in ("VIRTUAL_ENV", "CONDA_PREFIX"):
        if (folder := value(variable)) and (Path(folder) / "bin" / "python").is_file():
            yield Path(folder) / "bin" / "python"
    for name in ("python", "python3"):
        if found := shutil.which(name, path=value("PATH")):
            yield Path(found)


# What a process needs to find its home, its files, and an accelerator that the caller chose.
_PASSED = (
    "PATH",
    "HOME",
    "USER",
    "LOGNAME",
    "TMPDIR",
    "LANG",
    "LC_ALL",
    "LD_LIBRARY_PATH",
    "CUDA_VISIBLE_DEVICES",
    "NVIDIA_VISIBLE_DEVICES",
    *THREAD_VARIABLES,
)
# How an accelerator may be reached on a shared machine is its owner's to say.
_PASSED_PREFIXES = ("NCCL_", "NVSHMEM_", "TORCH_SYMM_MEM_")
# What changes the results or the route they take: it goes on record, passed or not.
_TELLING = (
    "PYTORCH_",
    "TORCH_",
    "OMP_",
    "MKL_",
    "KMP_",
    "OPENBLAS_",
    "VECLIB_",
    "CUDA_VISIBLE",
    "CUDA_LAUNCH",
    "NVIDIA_TF32",
    "CUBLAS_",
    "DYLD_",
    "LD_",
    "MTL_",
    "METAL_",
)


@dataclass(frozen=True, slots=True, kw_only=True)
class SuiteEnviron:
    """The whole environment of the children, and what of the caller's would have mattered."""

    variables: Mapping[str, str]
    kept: Mapping[str, str]
    removed: Mapping[str, str]


def suite_environ(
    caller: Mapping[str, str], *, overlay: Path | None = None, bytecode: Path | None = None
) -> SuiteEnviron:
    """Return the environment for the suite; `bytecode`: a folder of ours where Python keeps what it compiles.

    PYTORCH_ENABLE_MPS_FALLBACK above all must not get through (the CPU would be compared with
    itself), nor FAST_MATH, PREFER_METAL or watermarks: one wheel, one verdict.

    >>> made = suite_environ({"PATH": "/bin", "PYTORCH_ENABLE_MPS_FALLBACK": "1", "EDITOR": "vi"})
    >>> dict(made.removed), "EDITOR" in made.variables
    ({'PYTORCH_ENABLE_MPS_FALLBACK': '1'}, False)
    """
    variables = {name: value for name, value in caller.items() if name in _PASSED or name.startswith(_PASSED_PREFIXES)}
    telling = {name: value for name, value in sorted(caller.items()) if name.startswith(_TELLING)}
    variables |= {
        "PYTHONDONTWRITEBYTECODE": "1",  # nothing is written into a user's interpreter
        "PYTHONUNBUFFERED": "1",
        "PYTHONFAULTHANDLER": "1",
        "PYTHONIOENCODING": "utf-8",
        "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1",  # a user's interpreter may hold any plugin
        "NVIDIA_TF32_OVERRIDE": "0",
        "CUBLAS_WORKSPACE_CONFIG": ":4096:8",
    }
    if overlay is not None:
        variables["PYTHONPATH"] = str(overlay)
    if bytecode is not None:
        del variables["PYTHONDONTWRITEBYTECODE"]
        variables["PYTHONPYCACHEPREFIX"] = str(bytecode)
    return SuiteEnviron(
        variables=variables,
        kept={name: value for name, value in telling.items() if variables.get(name) == value},
        removed={name: value for name, value in telling.items() if variables.get(name) != value},
    )


# Run by a Python from 3.7 on. A torch counts where its files lie: metadata may speak of one that is gone, or miss one.
_DESCRIBE = """
import json, os, platform, sys, sysconfig
try:
    from importlib import metadata
except ImportError:
    metadata = None
real = os.path.realpath
torches = {}
pytest = None
for folder in sys.path:
    file = os.path.join(folder or os.curdir, "torch", "__init__.py")
    if os.path.isfile(file):
        torches.setdefault(real(os.path.dirname(file)), None)
versions = set()
if metadata:
    pytest = next((found.version for found in metadata.distributions(name="pytest")), None)
    for found in metadata.distributions(name="torch"):
        versions.add((real(str(found.locate_file("torch"))), found.version))
for folder, version in versions:
    if torches.get(folder) is None:
        if folder in torches or os.path.isdir(folder):
            torches[folder] = version
    elif torches[folder] != version:
        torches[folder] += " and " + version
paths = sysconfig.get_paths()
print(json.dumps({
    "executable": sys.executable,
    "base": real(getattr(sys, "_base_executable", None) or sys.executable),
    "version": platform.python_version(),
    "short": "%d.%d" % sys.version_info[:2] + ("t" if sysconfig.get_config_var("Py_GIL_DISABLED") else ""),
    "implementation": platform.python_implementation(),
    "machine": platform.machine(),
    "system": platform.system(),
    "platform": sysconfig.get_platform(),
    "folders": sorted({real(paths[name]) for name in ("purelib", "platlib", "scripts") if paths.get(name)}),
    "pytest": pytest,
    "torches": sorted([folder, version] for folder, version in torches.items()),
}))
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Interpreter:
    """One Python: what it is, the folders that packages go to, and each torch on its path.

    `base` is the program that a venv made by it would start: the same for all venvs of one Python.
    """

    executable: Path
    version: str
    short: str
    implementation: str
    machine: str
    system: str
    platform: str
    folders: tuple[Path, ...]
    torches: tuple[tuple[Path, str | None], ...]
    pytest: str | None = None
    base: Path | None = None


def lacks_bytecode(interpreter: Interpreter, torch: Path) -> bool:
    """Say whether each process would compile this torch's Python files anew, and could keep that elsewhere (3.8).

    uv installs without compiling: https://docs.astral.sh/uv/reference/settings/#compile-bytecode
    """
    has_prefix = Version(interpreter.version) >= Version("3.8")
    return has_prefix and not any((torch / "__pycache__").glob("__init__.*.pyc"))


@dataclass(frozen=True, slots=True, kw_only=True)
class Listing:
    """What lies in an interpreter's folders: each file's size and time; a folder by its name alone."""

    files: Mapping[str, tuple[int, int]]

    def changed_since(self, before: Listing) -> tuple[str, ...]:
        """Return the names that came, went or changed."""
        names = sorted({*self.files, *before.files})
        return tuple(name for name in names if self.files.get(name) != before.files.get(name))


def describe_interpreter(path: Path, *, environ: Mapping[str, str]) -> Interpreter:
    """Return what a Python says of itself.

    Raises:
        UsageError: it is not there, is none, or is for another machine.
    """
    python = executable_of(path)
    answer = capture(Command(argv=(str(python), "-c", _DESCRIBE), environ=environ), timeout_seconds=60)
    try:
        facts = parse_json(answer.stdout.strip().splitlines()[-1])
        return Interpreter(
            executable=python,
            version=facts["version"],
            short=facts["short"],
            implementation=facts["implementation"],
            machine=facts["machine"],
            system=facts["system"],
            platform=facts["platform"],
            folders=tuple(Path(folder) for folder in facts["folders"]),
            torches=tuple((Path(folder), version) for folder, version in facts["torches"]),
            pytest=facts.get("pytest"),
            base=Path(facts["base"]),
        )
    except (ValueError, IndexError, KeyError, TypeError) as error:
        raise UsageError(f"{python}: does not answer as a Python: {_why(python, answer)}", hint=_HINT) from error


_HINT = "--python takes an interpreter (bin/python of a venv or conda environment) or the environment's folder"


def the_one_torch(interpreter: Interpreter) -> tuple[Path, str | None]:
    """Return where the torch lies and its version.

    Raises:
        UsageError: there is none, or more than one and the answer would depend on the path.
    """
    if not interpreter.torches:
        raise UsageError(
            f"{interpreter.executable}: has no torch (looked on its whole sys.path; nothing is installed into it)",
            hint="name an interpreter that has one, or have an environment made: verify_mps -- torch==2.13.0",
        )
    several = len(interpreter.torches) > 1 or " and " in (interpreter.torches[0][1] or "")
    if several:
        found = "\n  ".join(f"{version or 'of unknown version'} in {folder}" for folder, version in interpreter.torches)
        raise UsageError(
            f"{interpreter.executable}: has more than one torch; which one is imported depends on the path:\n  {found}",
            hint="uninstall all but one, or name an interpreter with one",
        )
    return interpreter.torches[0]


def listing(interpreter: Interpreter) -> Listing:
    """Return a listing of the folders that packages go to, to compare before with after."""
    files: dict[str, tuple[int, int]] = {}
    waiting = [str(folder) for folder in interpreter.folders]
    while waiting:
        try:
            entries = os.scandir(waiting.pop())  # a torch brings 15,000 files: a `Path` of each takes ten times as long
        except OSError:
            continue  # not there, or not ours to read
        with entries:
            for entry in entries:
                if entry.is_dir(follow_symlinks=False):
                    files[entry.path] = (0, 0)
                    waiting.append(entry.path)
                else:
                    facts = entry.stat(follow_symlinks=False)
                    files[entry.path] = (facts.st_size, facts.st_mtime_ns)
    return Listing(files=files)


def machine_of_program(head: bytes) -> str | None:
    """Return the machine a program is for, from its first bytes (ELF, or thin Mach-O); None for anything else.

    >>> machine_of_program(bytes.fromhex("7f454c46020101000000000000000000") + bytes([2, 0, 183, 0]))
    'aarch64 (Linux)'
    """
    if head[:4] == b"\x7fELF" and len(head) >= 20:
        number = int.from_bytes(head[18:20], "little" if head[5] == 1 else "big")
        names = {3: "i386", 40: "arm", 62: "x86_64", 183: "aarch64", 243: "riscv64"}
        return f"{names.get(number, f'machine {number}')} (Linux)"
    if head[:4] == b"\xcf\xfa\xed\xfe" and len(head) >= 8:
        number = int.from_bytes(head[4:8], "little")
        return {0x01000007: "x86_64 (macOS)", 0x0100000C: "arm64 (macOS)"}.get(number, f"machine {number:#x} (macOS)")
    return None


def executable_of(path: Path) -> Path:
    """Return the interpreter meant, absolute: a folder stands for its bin/python. Links stay: a venv is known by them.

    Raises:
        UsageError: nothing is there, or a folder without one.
    """
    python = path.absolute()
    if python.is_dir():
        inside = next((python / name for name in ("bin/python", "bin/python3") if (python / name).exists()), None)
        if inside is None:
            raise UsageError(f"{path}: is a folder without bin/python", hint=_HINT)
        return inside
    if not python.exists():
        dangling = f"is a link to {python.readlink()}, which is not there" if python.is_symlink() else "no such file"
        raise UsageError(f"{path}: {dangling}", hint=_HINT)
    return python


def _why(python: Path, answer: Captured) -> str:
    if answer.timed_out:
        return "no answer within a minute"
    if answer.exit is None:
        with open_regular(python) as file:
            machine = machine_of_program(file.read(64))
        return f"it is for {machine}: {answer.stderr}" if machine else answer.stderr
    said = (answer.stderr.strip() or answer.stdout.strip())[-300:]
    # A program that is not a Python repeats the question in its complaint.
    is_echo = not said or any(line.strip() in said for line in _DESCRIBE.splitlines() if len(line.strip()) > 20)
    return f"it ended with exit {answer.exit}" if is_echo else said
