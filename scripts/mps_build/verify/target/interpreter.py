"""An interpreter and the torch in it, seen without touching either."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from mps_build.common.errors import UsageError
from mps_build.common.json_text import parse_json
from mps_build.common.opening import open_regular
from mps_build.common.process import Captured, Command, capture

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
    python = _executable(path)
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


def _executable(path: Path) -> Path:
    """Return the interpreter meant: a folder stands for its bin/python. Links stay: a venv is known by its own."""
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
