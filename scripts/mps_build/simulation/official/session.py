"""A program in an official wheel's own Python: what it needs, its environment, how it is started."""

from __future__ import annotations

import json
import os
import shlex
import shutil
import sys
from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from pathlib import Path

from mps_build.common.cores import usable_cores
from mps_build.common.environment import fetch_environ
from mps_build.common.errors import BuildEnvironmentError, OwnFault, disk_full
from mps_build.common.files import write_whole
from mps_build.common.process import Command, CommandFailed, run_in_foreground, run_logged
from mps_build.common.receipts import StepResult, digest_of
from mps_build.common.reporting import Reporter
from mps_build.common.wheels.download import pip_command
from mps_build.common.wheels.pip_call import Limits, limits_of_run, refused_unchecked, run_pip
from mps_build.common.workspace import expanded, remove_tree

from ..builder.build import held
from ..libraries import plugin_folder
from .build import Below, provide_below
from .interpreter import Interpreter, check_version, debian_interpreter, emulated, is_version, named_interpreter
from .kernel_server import kernel_server
from .metal_build import Metal, Zig, build_metal
from .tools import (
    Tools,
    check_host,
    check_room,
    ledger,
    official_folder,
    official_log,
    provide_tools,
    zig_environ,
)
from .wheel import Wheel, find_official, find_trusted, unpacked

HOOK = Path(__file__).parent / "python/mps_build_official.py"
_PLATFORMS = ("manylinux_2_28_aarch64", "manylinux_2_17_aarch64", "manylinux2014_aarch64")
# Of the session's own interpreter, and of programs of this machine: the wheel's Python is another one.
_NOT_PASSED = ("PYTHONPATH", "PYTHONHOME", "VIRTUAL_ENV", "CONDA_PREFIX", "LD_PRELOAD", "LD_LIBRARY_PATH")


@dataclass(frozen=True, slots=True, kw_only=True)
class Official:
    """A wheel that is ready to run.

    Attributes:
        environment: a virtual environment; its `python` starts the emulator.
        site: where the wheel is unpacked.
        metal: the software Metal that its MPS back end runs over; zig compiles the source text of kernels.
    """

    wheel: Wheel
    interpreter: Interpreter
    below: Below
    environment: Path
    site: Path
    zig: Path
    metal: Metal

    @property
    def python(self) -> Path:
        """What a program is run with."""
        return self.environment / "bin/python"


@dataclass(frozen=True, slots=True, kw_only=True)
class Request:
    """What the user asks for.

    Attributes:
        target: `torch==VERSION`, or the path of a wheel.
        is_trusted: a wheel that is a file may run.
        interpreter: a Python for arm64 Linux: its path, or the version of one of Debian's; None: Debian's first that
            there is a wheel for.
    """

    target: str
    is_trusted: bool = False
    interpreter: str | None = None

    @property
    def is_file(self) -> bool:
        """True if a file is named, not a release."""
        return "/" in self.target or self.target.endswith(".whl")


def check(request: Request) -> None:
    """Refuse what can be refused before anything is fetched.

    Raises:
        HostError: not a machine for it. RefusedForSafety, UsageError: the file may not run, or is not such a wheel.
    """
    check_host()
    if request.is_file:
        find_trusted(Path(request.target), is_trusted=request.is_trusted, python=None)


def prepare(request: Request, reporter: Reporter) -> Official:
    """Return a wheel that is ready to run; all that it needs is fetched and compiled once.

    Raises:
        HostError, DiskFull: this machine cannot run one. UsageError: there is no such wheel or interpreter.
        RefusedForSafety: its code may not run. SourceError, BuildEnvironmentError: a part could not be had.
        CompileError: the software Metal does not compile with this wheel's headers.
    """
    check_host()
    wanted = request.interpreter
    version = wanted if wanted is not None and is_version(wanted) else None
    program = expanded(wanted).absolute() if wanted is not None and version is None else None
    if version is not None:
        check_version(version)
    home = official_folder()
    with held(home / "lock", reporter):
        if not (home / "receipts/libcxx.json").is_file():
            check_room(home)
        tools = provide_tools(reporter)
        named = named_interpreter(program, tools, reporter) if program else None
        if named is not None:
            version = named.version
        if request.is_file:
            wheel = find_trusted(Path(request.target), is_trusted=request.is_trusted, python=version)
        else:
            wheel = find_official(request.target, python=version, reporter=reporter, is_trusted=request.is_trusted)
        interpreter = named or debian_interpreter(wheel.python, reporter)
        below = provide_below(tools, reporter)
        site = unpacked(wheel, below, reporter)
        metal = build_metal(
            site,
            version=str(wheel.version),
            home=home / "metal",
            zig=Zig(program=tools.zig, environ=zig_environ()),
            jobs=usable_cores(),
            reporter=reporter,
        )
        limits = limits_of_run(trust=request.is_trusted)
        environment = _environment(wheel, interpreter, tools, below, site, metal, reporter, limits)
    return Official(
        wheel=wheel,
        interpreter=interpreter,
        below=below,
        environment=environment,
        site=site,
        zig=tools.zig,
        metal=metal,
    )


def _environment(
    wheel: Wheel,
    interpreter: Interpreter,
    tools: Tools,
    below: Below,
    site: Path,
    metal: Metal,
    reporter: Reporter,
    limits: Limits,
) -> Path:
    facts = {
        "program": str(interpreter.program),
        "emulator": [str(word) for word in emulated(tools, interpreter.root)],
        "wheel": str(site),
        "requirements": list(wheel.requirements),
    }
    home = official_folder() / "environments" / f"torch-{wheel.version}-{digest_of(facts)[:12]}"
    packages = home / f"lib/python{interpreter.version}/site-packages"

    def make() -> StepResult:
        remove_tree(home)
        _install(wheel.requirements, interpreter, packages, reporter, limits)
        write_whole(home / "pyvenv.cfg", f"home = {interpreter.home}\ninclude-system-site-packages = false\n")
        _write_metadata(wheel, packages)
        return StepResult(trees=(home,))

    ledger().run("environment", key=home.name, version=1, inputs=facts, action=make)
    settings = {
        "loader": str(below.loader),
        "before": [str(interpreter.openblas), str(metal.machine)],
        "providers": [str(below.libcxx), str(metal.library)],
        "folders": [str(site)],
    }
    _write_programs(home, interpreter, tools)
    _write_if_new(packages / "mps_build_official.json", json.dumps(settings, indent=1) + "\n")
    _write_if_new(packages / "mps_build_official.pth", f"{site}\nimport mps_build_official\n")
    _write_if_new(packages / HOOK.name, HOOK.read_text(encoding="utf-8"))

    inputs = {**facts, "hook": digest_of(HOOK.read_text(encoding="utf-8"))}
    ledger().run("started", key=home.name, version=1, inputs=inputs, action=lambda: _start_once(home, wheel, reporter))
    return home


def _start_once(home: Path, wheel: Wheel, reporter: Reporter) -> StepResult:
    """Import torch, so that Python's byte code is there; whether it can be imported is seen as well."""
    reporter.started("Import torch once: Python compiles its modules to byte code")
    started, log = home / ".started", official_log()
    # Not the caller's PYTHON*: a container says that no byte code is written.
    command = Command(argv=(str(home / "bin/python"), "-c", "import torch, numpy"), environ=fetch_environ(os.environ))
    try:
        run_logged(command, log=log)
    except CommandFailed as failure:
        said = "\n".join(failure.tail[-4:]) or str(failure)
        if full := disk_full(said, during="while torch is imported"):
            raise full from failure
        raise OwnFault(
            f"torch {wheel.version} could not be imported:\n{said}", hint=f"please report it with {log}"
        ) from failure
    write_whole(started, "")
    reporter.done()
    return StepResult(files=(started,))


def packages_beside(
    official: Official, requirements: Sequence[str], reporter: Reporter, *, is_trusted: bool = False
) -> Path:
    """Return a folder with packages that are not part of the environment; made once for each Python.

    Raises:
        BuildEnvironmentError, DiskFull: they could not be installed.
        RefusedForSafety: the index gives no hash of one, and none is trusted without.
    """
    python = official.interpreter.version
    facts = {"requirements": list(requirements), "python": python}
    home = official_folder() / "beside" / f"python{python}-{digest_of(facts)[:12]}"

    def make() -> StepResult:
        remove_tree(home)
        _install(requirements, official.interpreter, home, reporter, limits_of_run(trust=is_trusted))
        return StepResult(trees=(home,))

    with held(official_folder() / "lock", reporter):
        ledger().run("beside", key=home.name, version=1, inputs=facts, action=make)
    return home


def _install(
    requirements: Sequence[str], interpreter: Interpreter, packages: Path, reporter: Reporter, limits: Limits
) -> None:
    """Let this machine's pip fetch and unpack packages of arm64: nothing of theirs runs here."""
    reporter.started(f"Install {', '.join(requirements)}")
    platforms = [word for name in _PLATFORMS for word in ("--platform", name)]
    argv = (
        *(*pip_command(limits), "install", "-q", "--disable-pip-version-check", "--no-input", "--no-compile"),
        *("--only-binary=:all:", "--implementation", "cp", "--python-version", interpreter.version, *platforms),
        *("--target", str(packages), *requirements),
    )
    try:
        run_pip(Command(argv=argv, environ=fetch_environ(os.environ)), log=official_log(), tell=reporter.line)
    except CommandFailed as failure:
        if unchecked := refused_unchecked("\n".join(failure.tail), wanted=", ".join(requirements)):
            raise unchecked from failure
        said = "\n".join(failure.tail[-6:])
        if full := disk_full(said, during="while packages are installed"):
            raise full from failure
        raise BuildEnvironmentError(
            f"{', '.join(requirements)} could not be had:\n{said}", hint=f"the whole output is in {official_log()}"
        ) from failure
    reporter.done()


def _write_programs(home: Path, interpreter: Interpreter, tools: Tools) -> None:
    """Write `python` and `pip`: scripts of this machine, so that a program of arm64 can start them as well.

    Byte code goes to a folder of the environment: below the emulator /usr may be this machine's own. OpenMP's threads
    sleep where they would spin for 200 ms: emulated, that took 1.6 times the CPU.
    """
    words = shlex.join(emulated(tools, interpreter.root))
    text = (
        "#!/bin/sh\n# Written by mps_build: the Python of an official macOS wheel, under qemu-user.\n"
        f"export PYTHONPYCACHEPREFIX={shlex.quote(str(home / 'bytecode'))}\n"
        'export KMP_BLOCKTIME="${KMP_BLOCKTIME-0}"\n'
        f'exec {words} -0 "$0" {shlex.quote(str(interpreter.program))} "$@"\n'
    )
    for name in ("python", "python3", f"python{interpreter.version}"):
        _write_if_new(home / "bin" / name, text, mode=0o755)
    for name in ("pip", "pip3"):
        _write_if_new(home / "bin" / name, pip_program(home / "bin/python"), mode=0o755)


def pip_program(python: Path) -> str:
    """Return the script `pip` of an environment: a module is compiled to byte code when it is first imported.

    Emulated, compiling the modules of one large package takes minutes; `--compile` behind `install` still does it.
    """
    return (
        '#!/bin/sh\nif [ "$1" = install ]; then shift; set -- install --no-compile "$@"; fi\n'
        f'exec {shlex.quote(str(python))} -m pip "$@"\n'
    )


def _write_metadata(wheel: Wheel, packages: Path) -> None:
    """Say to pip that this torch is there, and needs no more: its own words ask for CUDA where the system is Linux."""
    folder = packages / f"torch-{wheel.version}.dist-info"
    lines = ["Metadata-Version: 2.1", "Name: torch", f"Version: {wheel.version}"]
    lines += [f"Requires-Dist: {each}" for each in wheel.requirements if each != "pip"]
    write_whole(folder / "METADATA", "\n".join((*lines, "", "")))
    write_whole(folder / "INSTALLER", "mps-build\n")


def _write_if_new(path: Path, text: str, *, mode: int | None = None) -> None:
    if not path.is_file() or path.read_text(encoding="utf-8") != text:
        write_whole(path, text, mode=mode)


def program_environ(official: Official, *, environ: Mapping[str, str], macos: str) -> dict[str, str]:
    """Return the environment of a program, made from the caller's: `python` and `pip` are the wheel's."""
    kept = {
        name: value
        for name, value in environ.items()
        if name not in _NOT_PASSED and not name.startswith("MPS_BUILD_CALLER_")
    }
    path = environ.get("MPS_BUILD_CALLER_PATH") or environ.get("PATH", os.defpath)
    return {
        **kept,
        "PATH": os.pathsep.join((str(official.environment / "bin"), path)),
        "VIRTUAL_ENV": str(official.environment),
        "MPS_BUILD_MODULES": str(plugin_folder()),
        "MPS_BUILD_MACOS": macos,
    }


def served(official: Official) -> AbstractContextManager[dict[str, str]]:
    """Run the kernel server beside a block; gives the variables that programs of the wheel need."""
    return kernel_server(official.zig, zig_environ())


def run(official: Official, argv: Sequence[str], *, environ: Mapping[str, str], macos: str) -> int:
    """Run a program where the caller stands; return its exit status, as a shell gives it."""
    whole = program_environ(official, environ=environ, macos=macos)
    name, *rest = argv
    found = shutil.which(name, path=whole["PATH"]) if "/" not in name else None
    sys.stdout.flush()
    with served(official) as server:
        return run_in_foreground(Command(argv=(found or name, *rest), environ={**whole, **server}))
