"""The files of a zig toolchain: wrappers around zig, CMake's toolchain file, macOS's pyconfig.h over a host's."""

from __future__ import annotations

import json
import shlex
from pathlib import Path

from mps_build.common.files import write_whole

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
export ZIG_GLOBAL_CACHE_DIR={cache} ZIG_LOCAL_CACHE_DIR={local}
count=$#
output=
bundle=
objective=
framework=
linked=yes
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
    *.m|*.mm) objective=yes; set -- "$@" "$argument" ;;
    -c|-E|-S|-fsyntax-only|--version|-dumpversion) linked=; set -- "$@" "$argument" ;;
    -framework|-weak_framework) framework=yes; set -- "$@" "$argument" ;;
    *) set -- "$@" "$argument" ;;
  esac
done
[ -n "$bundle" ] && set -- "$@" "-Wl,-install_name,@rpath/${{output##*/}}"
[ -n "$objective" ] && set -- "$@" {compile}
[ -n "$framework" ] && set -- "$@" {link}
# Compiled and linked in one call, C++ would have no headers of libc++ any more: CMake and setuptools make two calls.
[ -n "$linked" ] && set -- "$@" {cxx_link}
# -s everywhere: zig would build its runtime once for each way of stripping, and stabs hold paths.
exec {zig} {mode} -target aarch64-macos.{target} -fno-sanitize=undefined -s {cxx_compile} -ivfsoverlay {overlay} "$@"
"""

_TOOL = """\
#!/bin/sh
export ZIG_GLOBAL_CACHE_DIR={cache} ZIG_LOCAL_CACHE_DIR={local}
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


def write_wrappers(
    folder: Path,
    *,
    zig: Path,
    cache: Path,
    deployment_target: str,
    compile_flags: tuple[str, ...],
    link_flags: tuple[str, ...],
    cxx_library: Path,
) -> None:
    """Write the programs cc, c++, ar and their like that call zig for macOS arm64, and CMake's toolchain file.

    Args:
        folder: where they go; zig's local cache is beside them.
        cache: zig's global cache, shared by all builds.
        deployment_target: the oldest macOS of the result, such as "14.0".
        compile_flags: for Objective-C.
        link_flags: for what names a framework.
        cxx_library: the libc++ that C++ is linked with.
    """
    folder.mkdir(parents=True, exist_ok=True)
    cache.mkdir(parents=True, exist_ok=True)
    words = {
        "zig": shlex.quote(str(zig)),
        "cache": shlex.quote(str(cache)),
        # A compiled file comes from this build's own folder, never from another's.
        "local": shlex.quote(str(folder / "local")),
        "overlay": shlex.quote(str(folder / "python-headers.json")),
        "target": deployment_target,
        "compile": shlex.join(compile_flags),
        "link": shlex.join(link_flags),
    }
    # macOS 11's libc++ is not known to have `operator delete(void*, size_t)`.
    cxx = {"cxx_compile": "-fno-sized-deallocation", "cxx_link": shlex.join(("-nostdlib++", str(cxx_library)))}
    write_if_new(folder / "c++", _WRAPPER.format(mode="c++", **cxx, **words), executable=True)
    words |= {"cxx_compile": "", "cxx_link": ""}
    for name, mode, text in (
        ("cc", "cc", _WRAPPER),
        ("ar", "ar", _TOOL),
        ("ranlib", "ranlib", _TOOL),
        ("strip", "strip", _REFUSAL),
        ("install_name_tool", "install_name_tool", _REFUSAL),
    ):
        write_if_new(folder / name, text.format(mode=mode, **words), executable=True)
    write_if_new(folder / "darwin-arm64.cmake", _TOOLCHAIN.format(folder=_cmake(folder), target=deployment_target))


def write_overlay(folder: Path, *, include: Path, free_threaded: bool) -> None:
    """Write a pyconfig.h for macOS and a Clang overlay that puts it in the place of this host's.

    Args:
        include: the folder of Python.h.
        free_threaded: the interpreter was built without the GIL.
    """
    threads = "#define Py_GIL_DISABLED 1\n" if free_threaded else ""
    write_if_new(folder / "pyconfig.h", f"{_PYCONFIG}{threads}#endif\n")
    # Python.h includes "pyconfig.h" from its own folder, before any -I: only an overlay can replace it.
    overlay = {
        "version": 0,
        "case-sensitive": True,
        "roots": [
            {"type": "file", "name": str(include / "pyconfig.h"), "external-contents": str(folder / "pyconfig.h")}
        ],
    }
    write_if_new(folder / "python-headers.json", json.dumps(overlay, indent=1) + "\n")


def write_if_new(path: Path, text: str, *, executable: bool = False) -> None:
    """Leave an equal file alone: its time stamp is what ninja and CMake look at."""
    if path.is_file() and path.read_text(encoding="utf-8") == text:
        return
    write_whole(path, text, mode=0o755 if executable else None)


def _cmake(path: Path) -> str:
    return str(path).replace("\\", "\\\\").replace('"', '\\"').replace("$", "\\$").replace(";", "\\;")
