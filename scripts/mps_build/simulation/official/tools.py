"""What an official wheel is run with: an emulator of arm64, and zig as the compiler of what stands below the wheel."""

from __future__ import annotations

import os
import shutil
import sys
from dataclasses import dataclass
from pathlib import Path

from mps_build.common.environment import fetch_environ
from mps_build.common.errors import BuildEnvironmentError, DiskFull, HostError
from mps_build.common.files import write_whole
from mps_build.common.process import Command, CommandFailed, capture
from mps_build.common.receipts import Ledger, StepResult
from mps_build.common.recipe.locks import lock_text
from mps_build.common.reporting import Reporter
from mps_build.common.wheels.download import own_folder, pip_command
from mps_build.common.wheels.pip_call import run_pip
from mps_build.common.workspace import cache_folder
from mps_build.wheel_build.mm.compiler import ZIG, find_zig
from mps_build.wheel_build.rehearsal.darwin import package_lines, zig_cache

from ..builder.packages import Apt, unpack

# Of zig 0.5 GB, its cache 1.4, arm64's Python and packages 0.3; a release takes 0.3 to 0.8.
FREE_BYTES = 3_500_000_000
_EMULATORS = ("qemu-aarch64-static", "qemu-aarch64")
_APT_TOOLS = {"apt-get": "apt", "dpkg-deb": "dpkg", "tar": "tar"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Tools:
    """The programs; `emulator` is one file that needs no other."""

    emulator: Path
    zig: Path


def official_folder() -> Path:
    """Return where all that is official lies: a folder of this user alone, since code in it is run."""
    return own_folder(cache_folder() / "official")


def official_log() -> Path:
    """Return the file that all programs' output goes to."""
    return official_folder() / "logs" / "prepare.log"


def check_host() -> None:
    """Refuse a host that an official wheel cannot be run on, before any work.

    Raises:
        HostError: it is not Linux on x86-64.
    """
    system, machine = sys.platform, os.uname().machine
    if system != "linux" or machine != "x86_64":
        raise HostError(
            f"an official wheel is run on Linux on x86-64, this is {system} on {machine}",
            hint="on a Mac, `pip install torch` is the wheel itself; on arm64 Linux this was never tried",
        )


def check_room(folder: Path, needed: int = FREE_BYTES) -> None:
    """Refuse a disk with less room than what comes next takes: the first run, or a wheel's files.

    Raises:
        DiskFull: how much is missing, and where.
    """
    free = shutil.disk_usage(folder).free
    if free < needed:
        raise DiskFull(
            f"{folder} has {free / 1e9:.1f} GB free, and {needed / 1e9:.1f} GB are needed",
            hint="free some space (`nox -s clean` lists what this tool uses), or set MPS_BUILD_CACHE to another disk",
        )


def check_apt() -> None:
    """Refuse a host without the programs that fetch and unpack Debian's packages.

    Raises:
        HostError: which are missing, and the command that installs them.
    """
    missing = {tool: package for tool, package in _APT_TOOLS.items() if not shutil.which(tool)}
    if missing:
        raise HostError(
            f"missing: {', '.join(missing)}", hint=f"on Debian or Ubuntu: apt-get install {' '.join(missing.values())}"
        )


def provide_tools(reporter: Reporter) -> Tools:
    """Return the tools: those of this machine, else fetched once.

    Raises:
        HostError, BuildEnvironmentError: one could not be had.
    """
    return Tools(emulator=_emulator(reporter), zig=_zig(reporter))


def _emulator(reporter: Reporter) -> Path:
    found = next(filter(None, map(shutil.which, _EMULATORS)), None)
    if found is not None:
        return _working(Path(found))
    home = official_folder() / "emulator"
    program = home / "usr/bin" / _EMULATORS[0]

    def fetch() -> StepResult:
        check_apt()
        reporter.line("qemu-user is fetched from Debian, without a superuser: 38 MB, 220 MB on disk")
        archives = Apt(official_folder() / "apt", suite="bookworm", log=official_log(), reporter=reporter).fetch(
            ["qemu-user-static"]
        )
        ours = [archive for archive in archives if archive.name.startswith("qemu-user-static_")]
        unpack(ours, home, log=official_log(), reporter=reporter)
        for other in (home / "usr/bin").iterdir():  # 30 other processors
            if other != program:
                other.unlink()
        for archive in archives:
            archive.unlink()
        return StepResult(files=(program,))

    ledger().run("emulator", version=1, inputs={}, action=fetch)
    return _working(program)


def _working(program: Path) -> Path:
    answer = capture(Command(argv=(str(program), "--version")))
    if not answer.ok:
        raise HostError(f"{program} does not run: {answer.stderr.strip() or answer.exit}", hint="remove it, or fix it")
    return program


def _zig(reporter: Reporter) -> Path:
    try:
        return find_zig()
    except BuildEnvironmentError:
        pass
    home = cache_folder() / "ziglang" / ZIG.partition("==")[2]
    zig = home / "site/ziglang/zig"

    def install() -> StepResult:
        reporter.started("Install zig (100 MB, 440 MB on disk)")
        requirements = home / "requirements.txt"
        write_whole(requirements, package_lines(lock_text("sample.txt"), "ziglang"))
        pip = (*pip_command(), "install", "-q", "--no-input", "--no-deps", "--require-hashes", "--upgrade")
        argv = (*pip, "--target", str(home / "site"), "-r", str(requirements))
        try:
            run_pip(Command(argv=argv, environ=fetch_environ(os.environ)), log=official_log(), tell=reporter.line)
        except CommandFailed as failure:
            said = "\n".join(failure.tail[-6:])
            raise BuildEnvironmentError(f"no zig: {said}", hint=f"the whole output is in {official_log()}") from failure
        reporter.done()
        return StepResult(files=(zig,))

    Ledger(home / "receipts").run("zig", version=1, inputs={"requirement": ZIG}, action=install)
    return zig


def ledger() -> Ledger:
    """Return the receipts of what is made once for all releases."""
    return Ledger(official_folder() / "receipts")


def zig_environ() -> dict[str, str]:
    """Return zig's whole environment: it writes below the project's cache only."""
    cache = str(zig_cache())
    return {**fetch_environ(os.environ), "ZIG_GLOBAL_CACHE_DIR": cache, "ZIG_LOCAL_CACHE_DIR": f"{cache}/local"}
