"""The Linux Python that an official wheel is imported by: CPython for arm64, of the wheel's own version."""

from __future__ import annotations

import re
import struct
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from packaging.version import Version

from mps_build.common.errors import UsageError, reason_of
from mps_build.common.files import open_regular
from mps_build.common.process import Command, capture
from mps_build.common.receipts import StepResult
from mps_build.common.reporting import Reporter
from mps_build.common.workspace import remove_tree

from ..builder.packages import Apt, unpack
from ..builder.root import merge_usr
from .tools import Tools, check_apt, ledger, official_folder, official_log

# Debian's suites by their Python, in the order in which a wheel is looked for; its OpenBLAS stands for Accelerate. The
# third is for 1.12 and 1.13, which have no wheel for a newer one of them.
SUITES: Mapping[str, str] = {"3.11": "bookworm", "3.13": "trixie", "3.9": "bullseye", "3.14": "forky"}
_LIBRARIES = ("libopenblas0-serial", "libstdc++6")  # the second is what packages for Linux expect of any system
_OPENBLAS = "usr/lib/aarch64-linux-gnu/openblas-serial/libopenblas.so.0"
_ARM64, _HEAD = 183, struct.Struct("<4sBB10xHH")
_ASK = "import sys, sysconfig; print(sys.implementation.name, '%d.%d' % sys.version_info[:2], sys.base_prefix)"


@dataclass(frozen=True, slots=True, kw_only=True)
class Interpreter:
    """A Python of arm64 Linux.

    Attributes:
        version: such as 3.11.
        program: the file that is run.
        home: the folder of the program, as it knows it itself.
        root: the folder with its C library, and with OpenBLAS.
    """

    version: str
    program: Path
    home: str
    root: Path

    @property
    def openblas(self) -> Path:
        """The library that has BLAS and LAPACK, as the interpreter sees it."""
        return Path("/") / _OPENBLAS


def emulated(tools: Tools, root: Path) -> tuple[str, ...]:
    """Return how a program of arm64 is started; what lies below the root is seen first.

    The vector extensions that no Apple processor of this target has are off: OpenBLAS would use them, at a high price.
    """
    features = "max,sve=off,sme=off,pauth-impdef=on"
    return (str(tools.emulator), "-L", str(root), "-cpu", features, "-U", "LD_PRELOAD", "-U", "LD_LIBRARY_PATH")


def is_version(text: str) -> bool:
    """Whether a Python is named by its version, such as 3.13, and not by its path."""
    return re.fullmatch(r"3\.\d{1,2}", text) is not None


def check_version(version: str) -> None:
    """Refuse a version of Python that Debian does not have for arm64.

    Raises:
        UsageError: which ones it has.
    """
    if version not in SUITES:
        raise UsageError(
            f"Debian has no Python {version} that is fetched here, but {', '.join(sorted(SUITES, key=Version))}",
            hint="give one for arm64 Linux by its path: --interpreter PATH",
        )


def debian_interpreter(version: str, reporter: Reporter) -> Interpreter:
    """Return Debian's Python for arm64, fetched only if it is not there.

    Raises:
        UsageError: Debian has none of that version.
        BuildEnvironmentError: it could not be had.
    """
    check_version(version)
    name = f"python{version}"
    root = _root(SUITES[version], name, reporter)
    return Interpreter(version=version, program=root / "usr/bin" / name, home="/usr/bin", root=root)


def _root(suite: str, python: str, reporter: Reporter) -> Path:
    home = official_folder() / "roots" / suite
    packages = [python, *_LIBRARIES]

    def make() -> StepResult:
        check_apt()
        reporter.line(f"Debian {suite}'s {python} for arm64, its libraries and OpenBLAS: 30 MB, 130 MB on disk")
        apt = Apt(
            official_folder() / f"apt-{suite}-arm64",
            suite=suite,
            architecture="arm64",
            log=official_log(),
            reporter=reporter,
        )
        archives = apt.fetch(packages)
        remove_tree(home)
        home.mkdir(parents=True)
        unpack(archives, home, log=official_log(), reporter=reporter)
        merge_usr(home)  # programs name their loader below /lib, and trixie's C library lies below /usr
        for archive in archives:
            archive.unlink()
        return StepResult(trees=(home,))

    ledger().run("root", key=suite, version=2, inputs={"packages": packages}, action=make)
    return home


def named_interpreter(path: Path, tools: Tools, reporter: Reporter) -> Interpreter:
    """Return the Python that the user names.

    Raises:
        UsageError: it is not a CPython for arm64 Linux, or does not run here.
    """
    try:
        with open_regular(path) as file:
            head = file.read(_HEAD.size)
    except OSError as error:
        raise UsageError(f"--interpreter {path}: {reason_of(error)}", hint="give the file of a Python") from error
    magic, bits, order, _, machine = _HEAD.unpack(head) if len(head) == _HEAD.size else (b"", 0, 0, 0, 0)
    if (magic, bits, order) != (b"\x7fELF", 2, 1) or machine != _ARM64:
        raise UsageError(
            f"--interpreter {path}: is not a program for arm64 Linux",
            hint="such as what `uv python install cpython-3.12-linux-aarch64-gnu` installs: the file, not a script",
        )
    root = _root(SUITES["3.13"], "python3.13", reporter)  # the newer C library runs what asks for an older one
    answer = capture(Command(argv=(*emulated(tools, root), str(path), "-I", "-c", _ASK)), timeout_seconds=120)
    words = answer.stdout.split()
    if not answer.ok or len(words) != 3 or words[0] != "cpython":
        said = (answer.stderr.strip().splitlines() or [f"exit {answer.exit}"])[-1]
        raise UsageError(f"--interpreter {path}: does not answer as a CPython: {said}")
    return Interpreter(version=words[1], program=path.absolute(), home=str(path.absolute().parent), root=root)
