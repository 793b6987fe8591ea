"""zig as the compiler of a macOS arm64 build on another system: wrappers, a CMake toolchain file, Python's headers.

What a cross build can have: real arm64 Mach-O files, signed ad hoc by zig's linker. What it
cannot: Apple's frameworks and Metal, so USE_MPS is off in it, as the recipe's `cross` part says.
"""

from __future__ import annotations

import hashlib
import json
import os
import shlex
import shutil
from pathlib import Path

from .environ import Toolchain
from .errors import BuildEnvironmentError
from .process import Command, capture

_ASK = """\
import json, sys, sysconfig, ziglang, os
ask = sysconfig.get_config_var
print(json.dumps({
    "zig": os.path.join(os.path.dirname(ziglang.__file__), "zig"),
    "include": sysconfig.get_path("include"),
    "abi": f"{sys.version_info[0]}{sys.version_info[1]}{'t' if ask('Py_GIL_DISABLED') else ''}",
    "free_threaded": bool(ask("Py_GIL_DISABLED")),
    "implementation": sys.implementation.name,
}))
"""

# What CPython's public headers ask of pyconfig.h, as it stands on macOS arm64 (LP64, little endian).
# A whole pyconfig.h of a Mac is not to be had here, and an extension needs no more.
_PYCONFIG = """\
/* macOS arm64, written by mps_build for a cross build. */
#ifndef Py_PYCONFIG_H
#define Py_PYCONFIG_H
#define ALIGNOF_LONG 8
#define ALIGNOF_SIZE_T 8
#define ALIGNOF_MAX_ALIGN_T 8
#define DOUBLE_IS_LITTLE_ENDIAN_IEEE754 1
#define HAVE_BUILTIN_ATOMIC 1
#define HAVE_STD_ATOMIC 1
#define HAVE_CLOCK_GETTIME 1
#define HAVE_DYNAMIC_LOADING 1
#define HAVE_GCC_UINT128_T 1
#define HAVE_LONG_DOUBLE 1
#define HAVE_PROTOTYPES 1
#define HAVE_PTHREAD_H 1
#define HAVE_SSIZE_T 1
#define HAVE_STDINT_H 1
#define HAVE_STDLIB_H 1
#define HAVE_SYS_TIME_H 1
#define HAVE_SYS_TYPES_H 1
#define HAVE_UNISTD_H 1
#define HAVE_WCHAR_H 1
#define SIZEOF_DOUBLE 8
#define SIZEOF_FLOAT 4
#define SIZEOF_FPOS_T 8
#define SIZEOF_INT 4
#define SIZEOF_LONG 8
#define SIZEOF_LONG_DOUBLE 8
#define SIZEOF_LONG_LONG 8
#define SIZEOF_OFF_T 8
#define SIZEOF_PID_T 4
#define SIZEOF_PTHREAD_KEY_T 8
#define SIZEOF_PTHREAD_T 8
#define SIZEOF_SHORT 2
#define SIZEOF_SIZE_T 8
#define SIZEOF_TIME_T 8
#define SIZEOF_UINTPTR_T 8
#define SIZEOF_VOID_P 8
#define SIZEOF_WCHAR_T 4
#define SIZEOF__BOOL 1
#define STDC_HEADERS 1
#define WITH_DOC_STRINGS 1
#define WITH_PYMALLOC 1
#define _DARWIN_C_SOURCE 1
"""

_WRAPPER = """\
#!/bin/sh
# zig {mode} for macOS arm64, written by mps_build.
export ZIG_GLOBAL_CACHE_DIR={cache} ZIG_LOCAL_CACHE_DIR={cache}/local
count=$#
output=
bundle=
while [ "$count" -gt 0 ]; do
  argument=$1
  shift
  count=$((count - 1))
  case $argument in
    # zig knows no MH_BUNDLE; Python loads an MH_DYLIB as well, and that must have a name.
    -bundle) bundle=yes; set -- "$@" -shared ;;
    # The target carries the version.
    -mmacosx-version-min=*) ;;
    -o) output=$1; set -- "$@" -o "$1"; shift; count=$((count - 1)) ;;
    *) set -- "$@" "$argument" ;;
  esac
done
[ -n "$bundle" ] && set -- "$@" "-Wl,-install_name,@rpath/${{output##*/}}"
# -s everywhere: zig would build libc++ once for each way of stripping, and stabs hold paths.
exec {zig} {mode} -target aarch64-macos.{target} -fno-sanitize=undefined -s -ivfsoverlay {overlay} "$@"
"""

_TOOL = """\
#!/bin/sh
export ZIG_GLOBAL_CACHE_DIR={cache} ZIG_LOCAL_CACHE_DIR={cache}/local
exec {zig} {mode} "$@"
"""

_REFUSAL = """\
#!/bin/sh
echo "mps_build: {mode} would rewrite a signed file, and zig has no {mode}: set names and rpaths when linking" >&2
exit 1
"""

_TOOLCHAIN = """\
# macOS arm64 by zig on another system, written by mps_build.
set(CMAKE_SYSTEM_NAME Darwin)
set(CMAKE_SYSTEM_PROCESSOR arm64)
set(CMAKE_OSX_DEPLOYMENT_TARGET "{target}" CACHE STRING "the recipe's deployment target")
set(CMAKE_OSX_SYSROOT "" CACHE STRING "zig brings its own headers of libSystem")
set(CMAKE_C_COMPILER "{folder}/cc")
set(CMAKE_CXX_COMPILER "{folder}/c++")
set(CMAKE_OBJC_COMPILER "{folder}/cc")
set(CMAKE_OBJCXX_COMPILER "{folder}/c++")
set(CMAKE_AR "{folder}/ar" CACHE FILEPATH "")
set(CMAKE_RANLIB "{folder}/ranlib" CACHE FILEPATH "")
set(CMAKE_STRIP "{folder}/strip" CACHE FILEPATH "")
set(CMAKE_INSTALL_NAME_TOOL "{folder}/install_name_tool" CACHE FILEPATH "")
# Probes compile and do not link: nothing of macOS runs here.
set(CMAKE_TRY_COMPILE_TARGET_TYPE STATIC_LIBRARY)
# Nothing of this system may get in, but its programs.
set(CMAKE_FIND_ROOT_PATH "{folder}")
set(CMAKE_FIND_ROOT_PATH_MODE_PROGRAM NEVER)
set(CMAKE_FIND_ROOT_PATH_MODE_LIBRARY ONLY)
set(CMAKE_FIND_ROOT_PATH_MODE_PACKAGE ONLY)
"""


def cross_toolchain(*, python: Path, folder: Path, cache: Path, deployment_target: str) -> Toolchain:
    """Write wrappers and a CMake toolchain file to `folder`, and return the toolchain that a build must see.

    The files are equal for all Pythons of a tree but for the overlay that puts macOS's pyconfig.h
    over the one of `python`, so that only the binding is built again for another Python.

    Args:
        python: the build environment's Python; ziglang is installed in it, and its headers are used.
        cache: where zig keeps the libc++ that it builds at first use (a minute or two, once).

    Raises:
        BuildEnvironmentError: no ziglang, no Python headers, or zig does not run.
    """
    facts = _ask(python)
    zig = _home(Path(facts["zig"]).parent, cache) / "zig"
    version = capture(Command(argv=(str(zig), "version")))
    if not version.ok:
        raise BuildEnvironmentError(
            f"zig does not run: {version.stderr.strip() or version.exit}",
            hint="the package ziglang has a zig for x86-64 and arm64 Linux: is this host one of them?",
        )
    include = Path(facts["include"])
    if not (include / "Python.h").is_file():
        raise BuildEnvironmentError(
            f"Python {python} has no headers: {include / 'Python.h'} is missing",
            hint="install them (Debian and Ubuntu: python3-dev), or use a Python that brings them (uv, pyenv, conda)",
        )
    _write(folder, zig=zig, cache=cache, deployment_target=deployment_target)
    _write_overlay(folder, include=include, free_threaded=bool(facts["free_threaded"]))
    return Toolchain(
        name="zig",
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
            "libc++": "static",
        },
    )


def libcxx_command(toolchain: Toolchain, *, scratch: Path) -> Command:
    """Return the command that makes zig build its libc++, so that this minute shows as what it is.

    Later links find it in the cache; there, the command takes no time. `scratch` is a folder to write to.
    """
    folder = Path(toolchain.variables["CMAKE_TOOLCHAIN_FILE"]).parent
    source = scratch / "libcxx.cpp"
    scratch.mkdir(parents=True, exist_ok=True)
    _write_if_new(source, "#include <string>\nstd::string mps_build() { return std::to_string(1.0); }\n")
    argv = (str(folder / "c++"), "-fPIC", "-shared", str(source), "-o", str(scratch / "libcxx.dylib"))
    return Command(argv=argv, cwd=scratch, environ={"PATH": os.defpath})


def _home(package: Path, cache: Path) -> Path:
    """Return zig's folder in the cache, one place for all environments: its own path enters the key of its libc++."""
    digest = hashlib.sha256((package / "zig").read_bytes()).hexdigest()[:12]
    home = cache / f"zig-{digest}"
    if not home.is_dir():
        cache.mkdir(parents=True, exist_ok=True)
        beside = cache / f".{home.name}.{os.getpid()}"
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
        raise BuildEnvironmentError(
            f"{python} cannot say where its zig and its headers are: {answer.stderr.strip().splitlines()[-1:]}",
            hint="the recipe's lock must hold ziglang",
        )
    facts: dict[str, str] = json.loads(answer.stdout)
    if facts["implementation"] != "cpython":
        raise BuildEnvironmentError(f"{python} is {facts['implementation']}: wheels are built for CPython")
    return facts


def _write(folder: Path, *, zig: Path, cache: Path, deployment_target: str) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    cache.mkdir(parents=True, exist_ok=True)
    words = {
        "zig": shlex.quote(str(zig)),
        "cache": shlex.quote(str(cache)),
        "overlay": shlex.quote(str(folder / "python-headers.json")),
        "target": deployment_target,
    }
    for name, mode, text in (
        ("cc", "cc", _WRAPPER),
        ("c++", "c++", _WRAPPER),
        ("ar", "ar", _TOOL),
        ("ranlib", "ranlib", _TOOL),
        ("strip", "strip", _REFUSAL),
        ("install_name_tool", "install_name_tool", _REFUSAL),
    ):
        _write_if_new(folder / name, text.format(mode=mode, **words), executable=True)
    _write_if_new(folder / "darwin-arm64.cmake", _TOOLCHAIN.format(folder=_cmake(folder), target=deployment_target))


def _write_overlay(folder: Path, *, include: Path, free_threaded: bool) -> None:
    threads = "#define Py_GIL_DISABLED 1\n" if free_threaded else ""
    _write_if_new(folder / "pyconfig.h", f"{_PYCONFIG}{threads}#endif\n")
    # Python.h includes "pyconfig.h" from its own folder, before any -I: only an overlay can stand in for it.
    overlay = {
        "version": 0,
        "case-sensitive": True,
        "roots": [
            {"type": "file", "name": str(include / "pyconfig.h"), "external-contents": str(folder / "pyconfig.h")}
        ],
    }
    _write_if_new(folder / "python-headers.json", json.dumps(overlay, indent=1) + "\n")


def _write_if_new(path: Path, text: str, *, executable: bool = False) -> None:
    """Leave an equal file alone: its time stamp is what ninja and CMake look at."""
    if path.is_file() and path.read_text(encoding="utf-8") == text:
        return
    beside = path.with_name(f".{path.name}.{os.getpid()}")
    beside.write_text(text, encoding="utf-8")
    if executable:
        beside.chmod(0o755)
    beside.replace(path)


def _cmake(path: Path) -> str:
    return str(path).replace("\\", "\\\\").replace('"', '\\"').replace("$", "\\$").replace(";", "\\;")
