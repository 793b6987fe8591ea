"""zig for a rehearsal: installed from PyPI, its libc++ built beside other work."""

from __future__ import annotations

import os
from contextlib import AbstractContextManager
from pathlib import Path

from mps_build.common.environment import fetch_environ
from mps_build.common.errors import BuildEnvironmentError
from mps_build.common.files import write_whole
from mps_build.common.process import Command, CommandFailed, beside
from mps_build.common.receipts import Ledger, StepResult
from mps_build.common.recipe.catalogue import locks_root
from mps_build.common.wheels.pip_call import limited_pip, run_pip
from mps_build.common.workspace import cache_folder

from .session import Rehearsal, rehearsal_folder

# A string needs both archives: libc++ and libc++abi.
PROBE = "#include <string>\nstd::string probe() { return std::to_string(1.0); }\n"


def zig_cache() -> Path:
    """Return the folder where zig keeps what it builds; all rehearsals share it."""
    return cache_folder() / "zig"


def zig_program(rehearsal: Rehearsal) -> Path:
    """Return zig from PyPI, the one that the sample's lock names; a static program, the same inside a Debian root.

    Raises:
        BuildEnvironmentError: the lock names none, or pip cannot install it.
    """
    lock = locks_root() / "sample.txt"
    lines = package_lines(lock.read_text(encoding="utf-8"), "ziglang")
    # One folder a version, its receipt beside it: rehearsals share it, and a newer lock disturbs none that runs.
    home = cache_folder() / "ziglang" / lines.split()[0].partition("==")[2]
    zig = home / "site" / "ziglang" / "zig"

    def install() -> StepResult:
        rehearsal.console.started("Install zig")
        requirements = rehearsal.workspace.root / "zig-requirements.txt"
        requirements.parent.mkdir(parents=True, exist_ok=True)
        write_whole(requirements, lines)
        python = rehearsal_folder() / "pip" / "venv" / "bin" / "python"
        pip = (*limited_pip(python), "install", "-q", "--no-input", "--no-deps", "--require-hashes", "--upgrade")
        argv = (*pip, "--target", str(home / "site"), "-r", str(requirements))
        log = rehearsal.log("sdk")
        try:
            run_pip(Command(argv=argv, environ=fetch_environ(os.environ)), log=log, tell=rehearsal.console.line)
        except CommandFailed as failure:
            text = "\n".join(failure.tail[-6:])
            raise BuildEnvironmentError(f"no zig: {text}", hint=f"the whole output is in {log}") from failure
        rehearsal.console.done()
        return StepResult(files=(zig,))

    Ledger(home / "receipts").run("zig", version=1, inputs={"lock": lines}, action=install)
    return zig


def libcxx_ahead(zig: Path, *, folder: Path, target: str) -> AbstractContextManager[None]:
    """Let zig build its libc++ for this macOS beside a block: one core for two minutes, the first time.

    It fills zig's cache and decides nothing: who needs libc++ asks zig again.
    """
    probe = folder / "ahead.cpp"
    folder.mkdir(parents=True, exist_ok=True)
    write_whole(probe, PROBE)
    argv = (str(zig), "c++", "-target", f"aarch64-macos.{target}", "-shared", str(probe), "-o", f"{probe}.dylib")
    cache = str(zig_cache())
    environ = {**fetch_environ(os.environ), "ZIG_GLOBAL_CACHE_DIR": cache, "ZIG_LOCAL_CACHE_DIR": f"{cache}/local"}
    return beside(Command(argv=argv, environ=environ))


def package_lines(lock: str, name: str) -> str:
    r"""Return the lines of a lock that name one package, hashes included.

    >>> package_lines("a==1 \\\n  --hash=sha256:00\nziglang==0.1 \\\n  --hash=sha256:11\n", "ziglang")
    'ziglang==0.1   --hash=sha256:11\n'

    Raises:
        BuildEnvironmentError: the lock does not name it.
    """
    kept = [line for line in lock.replace("\\\n", "").splitlines() if line.startswith(f"{name}==")]
    if not kept:
        raise BuildEnvironmentError(f"the sample's lock names no {name}", hint="nox -s lock -- sample")
    return "".join(f"{line.replace('    ', ' ')}\n" for line in kept)
