"""zig as the compiler of a macOS arm64 build on another system: wrappers, a CMake toolchain file, Python's headers.

What a cross build can have: real arm64 Mach-O files, signed ad hoc by zig's linker, Objective-C++ against declarations
and stubs of our own. What it cannot: a Metal compiler, so shaders stay source, as the recipe's `cross` part says.
"""

from __future__ import annotations

import hashlib
import json
import os
import shlex
import shutil
from dataclasses import dataclass
from pathlib import Path

from mps_build.common.environment import Toolchain
from mps_build.common.errors import BuildEnvironmentError, disk_full
from mps_build.common.files import write_whole
from mps_build.common.json_text import parse_json, read_json
from mps_build.common.process import Command, CommandFailed, capture, run_logged
from mps_build.common.workspace import remove_tree

from ..objc import write_frameworks, write_stubs
from ..objc.stubs import imports_of, known_releases, tbd
from .files import write_if_new, write_overlay, write_wrappers

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
SDK_VERSION = "15.2"
# What clang calls for reference counting (-fobjc-arc), beside what a wheel of PyTorch imports: its own is without.
_CXX = "/usr/lib/libc++.1.dylib"
_CXX_RELEASE = "2.6.0"  # for macOS 11; the wheels of later releases ask newer systems, which have more names
_ARC = (
    *("_objc_autoreleaseReturnValue", "_objc_retainAutoreleasedReturnValue", "_objc_retainAutoreleaseReturnValue"),
    *("_objc_retainAutorelease", "_objc_retainBlock", "_objc_storeStrong", "_objc_unsafeClaimAutoreleasedReturnValue"),
    *("_objc_initWeak", "_objc_loadWeakRetained", "_objc_storeWeak", "_objc_destroyWeak", "_objc_copyWeak"),
)
# FindMps of the sample, and CMakeLists of PyTorch, ask for this one in the SDK and in the system.
_REQUIRED = "MetalPerformanceShadersGraph"
_XCRUN = """\
#!/bin/sh
# Stands in for Apple's xcrun (mps_build): an SDK of stubs, and no Metal compiler.
case "$*" in
  *--show-sdk-version*) echo {version}; exit 0 ;;
  *--show-sdk-path*) echo {sdk}; exit 0 ;;
esac
echo "xcrun: error: unable to find utility \\"$1\\", not a developer tool or in PATH" >&2
exit 72
"""
_SEAL = "outputs.sha256.json"
_LINKED = (".a", ".o", ".dylib", ".tbd")
# Where zig keeps what it made, and what that was made from; the folder of zig itself stays.
_FOLDERS = ("o", "h", "z", "b", "tmp", "local")


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


# Apple's frameworks for a cross build by zig: declarations and text stubs of our own, and an xcrun that answers.
#
# Objective-C++ compiles and links against them, so a recipe with a `cross` part can build its MPS half on another
# system. There is no Metal compiler: shaders stay source.


@dataclass(frozen=True, slots=True, kw_only=True)
class AppleFake:
    """What a cross build sees of Apple.

    Attributes:
        compile_flags: for Objective-C alone: plain C and C++ see none of it.
        link_flags: for what names a framework.
        cxx_library: a stub of the system's libc++, for all C++ that is linked.
        tools: the folder of xcrun, for PATH.
    """

    compile_flags: tuple[str, ...]
    link_flags: tuple[str, ...]
    cxx_library: Path
    tools: Path


def write_apple(folder: Path) -> AppleFake:
    """Write declarations, stubs and xcrun below `folder`, which is CMake's root for what is looked up."""
    sdk, tools = folder / "sdk", folder / "apple"
    declared = write_frameworks(folder / "objc", sdk=SDK_VERSION)
    stubs = write_stubs(sdk, release=known_releases()[-1], extra={"libobjc.A": _ARC}, declared=True)
    (folder / "System/Library/Frameworks" / f"{_REQUIRED}.framework").mkdir(parents=True, exist_ok=True)
    # Not zig's own libc++, which it would compile first (110 s of CPU): a Mac has one, and it is what Xcode links. The
    # stub has the names that an official wheel for macOS 11 imports; any other, of a newer libc++, fails the link.
    cxx_library = folder / "libsystemcxx.tbd"
    write_if_new(cxx_library, tbd(_CXX, imports_of(_CXX_RELEASE)[_CXX]))
    answers = {"version": SDK_VERSION, "sdk": shlex.quote(str(sdk))}
    write_if_new(tools / "xcrun", _XCRUN.format(**answers), executable=True)
    return AppleFake(
        compile_flags=declared.flags,
        # Apple's Foundation brings these two along; the stub has its own names only.
        link_flags=(f"-F{stubs.frameworks}", "-framework", "CoreFoundation", f"-L{stubs.libraries}", "-lobjc"),
        cxx_library=cxx_library,
        tools=tools,
    )


# Whether zig's cache still gives what it gave: the libraries that it links into every wheel, by their hashes.
#
# zig looks a library up by what it was made from, and links what lies there unread: a file that a disk, or anybody,
# has changed since would go into a wheel, signed and well formed.


def check_seal(cache: Path) -> tuple[str, ...]:
    """Return the sealed files that are gone or changed, by their names in the cache; none without a seal."""
    try:
        sealed = read_json(cache / _SEAL)
        return tuple(sorted(name for name, digest in sealed.items() if _digest(cache / name) != digest))
    except FileNotFoundError:
        return ()
    except (OSError, ValueError, AttributeError):
        return (_SEAL,)


def seal(cache: Path) -> None:
    """Remember what zig has made so far."""
    made = {
        path.relative_to(cache).as_posix(): _digest(path)
        for path in sorted((cache / "o").rglob("*"))
        if path.suffix in _LINKED and path.is_file()
    }
    write_whole(cache / _SEAL, json.dumps(made, indent=1) + "\n")


def drop_made(cache: Path) -> None:
    """Remove all that zig has made, so that it makes it again."""
    (cache / _SEAL).unlink(missing_ok=True)
    for name in _FOLDERS:
        remove_tree(cache / name)


def _digest(path: Path) -> str | None:
    return hashlib.sha256(path.read_bytes()).hexdigest() if path.is_file() and not path.is_symlink() else None
