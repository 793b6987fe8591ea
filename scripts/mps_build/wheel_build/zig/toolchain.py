"""zig as the compiler of a macOS arm64 build on another system: wrappers, a CMake toolchain file, Python's headers.

What a cross build can have: real arm64 Mach-O files, signed ad hoc by zig's linker, Objective-C++ against declarations
and stubs of our own. What it cannot: a Metal compiler, so shaders stay source, as the recipe's `cross` part says.
"""

from __future__ import annotations

import os
import shutil
from pathlib import Path

from mps_build.common.environment import Toolchain
from mps_build.common.errors import BuildEnvironmentError, disk_full
from mps_build.common.json_text import parse_json
from mps_build.common.process import Command, CommandFailed, capture, run_logged

from .files import write_if_new, write_overlay, write_wrappers
from .frameworks import SDK_VERSION, write_apple

_ASK = """\
import importlib.metadata, json, os, platform, sys, sysconfig, ziglang
ask = sysconfig.get_config_var
print(json.dumps({
    "package": f"{importlib.metadata.version('ziglang')}-{sys.platform}-{platform.machine()}",
    "zig": os.path.join(os.path.dirname(ziglang.__file__), "zig"),
    "include": sysconfig.get_path("include"),
    "abi": f"{sys.version_info[0]}{sys.version_info[1]}{'t' if ask('Py_GIL_DISABLED') else ''}",
    "free_threaded": bool(ask("Py_GIL_DISABLED")),
    "implementation": sys.implementation.name,
}))
"""


def cross_toolchain(*, python: Path, folder: Path, cache: Path, deployment_target: str) -> Toolchain:
    """Write wrappers and a CMake toolchain file to `folder`, and return the toolchain that a build must see.

    The files are equal for all Pythons of a tree but for the overlay that puts macOS's pyconfig.h
    over the one of `python`, so that only the binding is built again for another Python.

    Args:
        python: the build environment's Python; ziglang is installed in it, and its headers are used.
        cache: where zig keeps the runtime that it builds at first use (seconds, once).

    Raises:
        BuildEnvironmentError: no ziglang, no Python headers, or zig does not run.
    """
    facts = _ask(python)
    zig = _home(Path(facts["zig"]).parent, cache / f"zig-{facts['package']}") / "zig"
    version = capture(Command(argv=(str(zig), "version")))
    if not version.ok:
        raise BuildEnvironmentError(
            f"zig does not run: {version.stderr.strip() or version.exit}",
            hint="the package ziglang has a zig for x86-64 and arm64 Linux: check that this host is one of them",
        )
    include = Path(facts["include"])
    if not (include / "Python.h").is_file():
        raise BuildEnvironmentError(
            f"Python {python} has no headers: {include / 'Python.h'} is missing",
            hint="install them (Debian and Ubuntu: python3-dev), or use a Python that brings them (uv, pyenv, conda)",
        )
    apple = write_apple(folder)
    write_wrappers(
        folder,
        zig=zig,
        cache=cache,
        deployment_target=deployment_target,
        compile_flags=apple.compile_flags,
        link_flags=apple.link_flags,
        cxx_library=apple.cxx_library,
    )
    write_overlay(folder, include=include, free_threaded=bool(facts["free_threaded"]))
    return Toolchain(
        name="zig",
        path=(str(apple.tools),),
        variables={
            "CMAKE_TOOLCHAIN_FILE": str(folder / "darwin-arm64.cmake"),
            "MACOSX_DEPLOYMENT_TARGET": deployment_target,
            "_PYTHON_HOST_PLATFORM": f"macosx-{deployment_target}-arm64",
            "SETUPTOOLS_EXT_SUFFIX": f".cpython-{facts['abi']}-darwin.so",
        },
        reasons={
            "CMAKE_TOOLCHAIN_FILE": "zig's compilers and macOS as CMake's target",
            "_PYTHON_HOST_PLATFORM": "the wheel's platform is the target's, not this host's",
            "SETUPTOOLS_EXT_SUFFIX": "the binding is named for the macOS Python that will load it",
        },
        facts={
            "cross": "zig",
            "zig": version.stdout.strip(),
            "target": f"aarch64-macos.{deployment_target}",
            "libc++": "the system's",
            "frameworks": f"declarations and stubs of our own, as macOS SDK {SDK_VERSION}",
        },
    )


def runtime_command(toolchain: Toolchain, *, scratch: Path) -> Command:
    """Return the command that makes zig build its compiler runtime, so that this time shows as what it is.

    Later links find it in the cache; there, the command takes no time. `scratch` is a folder to write to.
    """
    folder = Path(toolchain.variables["CMAKE_TOOLCHAIN_FILE"]).parent
    source = scratch / "runtime.cpp"
    scratch.mkdir(parents=True, exist_ok=True)
    write_if_new(
        source,
        "int* mps_build() { return new int(1); }\n",
    )
    argv = (str(folder / "c++"), "-fPIC", "-shared", str(source), "-o", str(scratch / "runtime.dylib"))
    return Command(argv=argv, cwd=scratch, environ={"PATH": os.defpath})


def build_runtime(command: Command, *, log: Path) -> None:
    """Run `runtime_command`'s answer.

    Raises:
        BuildEnvironmentError: zig failed; its last words are in the message.
    """
    try:
        run_logged(command, log=log)
    except CommandFailed as failure:
        text = "\n".join(failure.tail[-6:])
        if full := disk_full(text, during="while zig builds its runtime"):
            raise full from failure
        raise BuildEnvironmentError(
            f"zig could not build its runtime ({failure}):\n{text}",
            hint=f"the whole output is in {log}; if zig's cache is damaged, remove its folder `zig` from the cache",
        ) from failure


def _home(package: Path, home: Path) -> Path:
    """Return zig's folder in the cache, one place for all environments: its own path enters the key of its runtime.

    The version names it, and not a hash of 170 MB: the lock has held the files to their hashes.
    """
    if not home.is_dir():
        home.parent.mkdir(parents=True, exist_ok=True)
        beside = home.with_name(f".{home.name}.{os.getpid()}")
        shutil.copytree(package, beside, copy_function=_link_or_copy)
        try:
            beside.replace(home)
        except OSError:  # another build was first
            shutil.rmtree(beside)
    return home


def _link_or_copy(source: str, target: str) -> None:
    try:
        os.link(source, target)
    except OSError:
        shutil.copy2(source, target)


def _ask(python: Path) -> dict[str, str]:
    answer = capture(Command(argv=(str(python), "-c", _ASK)))
    if not answer.ok:
        why = (answer.stderr.strip().splitlines() or [f"exit {answer.exit}"])[-1]
        raise BuildEnvironmentError(
            f"{python} cannot say where its zig and its headers are: {why}",
            hint="the recipe's lock must hold ziglang",
        )
    facts: dict[str, str] = parse_json(answer.stdout)
    if facts["implementation"] != "cpython":
        raise BuildEnvironmentError(f"{python} is {facts['implementation']}: wheels are built for CPython")
    return facts
