"""The compilers of a whole rehearsal: zig compiles, LLD links, both behind the names that CMake and setup.py call."""

from __future__ import annotations

import json
import shlex
from dataclasses import dataclass
from pathlib import Path

from ....common.receipts import digest_of
from ...zig.files import write_if_new, write_overlay
from ..darwin_sdk import DarwinSdk

# What zig's own flags leave different from Apple's clang; each was seen in objects (docs/rehearse.md).
_COMPILE_FLAGS = (
    # zig adds checks and debug information of its own at -O0.
    "-fno-sanitize=undefined",
    "-g0",
    # clang from 18 on names some templates otherwise than Apple's of Xcode 15.
    "-fclang-abi-compat=17",
    # zig's libc++ headers come without Apple's availability marks: objects would call what only a newer libc++ has.
    "-U_LIBCPP_HAS_VENDOR_AVAILABILITY_ANNOTATIONS",
    "-D_LIBCPP_HAS_VENDOR_AVAILABILITY_ANNOTATIONS=1",
    # Debian's tree links a compiled fmt; the release takes it from its headers.
    "-DFMT_HEADER_ONLY=1",
    # A precompiled header with its inputs' times in it would never be the same twice for a compiler cache.
    "-Xclang",
    "-fno-pch-timestamp",
)
# The kernels of each CPU capability ask for this by themselves, after the build type's -O0: a quarter of all CPU time.
_DROPPED = "-O3"
_PROGRAM = """\
#!/bin/bash
# Written by mps-build for macOS arm64: zig compiles, LLD links (zig's own linker writes another libc++ into every
# library). CMake hands over folders of the host's headers: those are dropped, the few that are needed come as links.
arguments=()
pending=
link=yes
# Warnings of C++ are upstream's business; to look for them takes a twentieth of the time. Objective-C's tell what the
# declarations lack.
last=(-w)
for each in "$@"; do
  if [ -n "$pending" ]; then
    case "$each" in /usr/include|/usr/include/*-linux-gnu) ;; *) arguments+=("$pending" "$each") ;; esac
    pending=
    continue
  fi
  case "$each" in
    -isystem|-idirafter) pending=$each; continue ;;
    -I/usr/include|-I/usr/include/*-linux-gnu|-isystem/usr/include) continue ;;
    {dropped}) continue ;;
    -c|-E|-S|-M|-MM|-fsyntax-only|-v|-V|--version|-print-*|--print-*|-dump*|-qversion|-###) link= ;;
    *.m|*.mm) link=; last=({objc}) ;;
    *.c|*.cc|*.cpp|*.cxx|*.s|*.S|-) link= ;;
  esac
  arguments+=("$each")
done
if [ -n "$link" ] && [ $# -gt 0 ]; then
  linked=()
  for each in "${{arguments[@]}}"; do
    # Flags of the compiler that a linker's driver would act on.
    case "$each" in -fopenmp*|-Xpreprocessor) ;; *) linked+=("$each") ;; esac
  done
  exec {driver} -target arm64-apple-macosx{target} -isysroot {sdk} -fuse-ld=lld -L{stubs} \\
    "${{linked[@]}}" {system} {runtime}
fi
"""
_COMPILE = """\
export ZIG_GLOBAL_CACHE_DIR={cache} ZIG_LOCAL_CACHE_DIR={cache}/local
# sleef's header in an x86-64 root declares nothing for arm64: PyTorch's branch without sleef is compiled instead.
exec {zig} {mode} -target aarch64-macos.{target} {flags} -ivfsoverlay {overlay} \\
  -idirafter {include} -F{frameworks} "${{arguments[@]}}" "${{last[@]}}" -UAT_BUILD_ARM_VEC256_WITH_SLEEF
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class WholeToolchain:
    """Where the whole rehearsal's compilers and stubs lie, beside the stub SDK.

    Attributes:
        objc: flags that let a compiler see the declarations of Apple's frameworks, made at run time.
        runtime: what clang calls by itself, as an archive (`@available`, complex division).
        llvm: the folder of LLVM's programs (clang, lld, llvm-nm), as seen inside the root.
    """

    sdk: DarwinSdk
    objc: tuple[str, ...]
    runtime: Path
    llvm: Path


def compiler_digest(zig_version: str) -> str:
    """Return what a compiler cache takes for the compiler's identity: zig and its flags stand behind a script."""
    return f"zig {zig_version} {digest_of([*_COMPILE_FLAGS, _DROPPED, _COMPILE])[:16]}"


def write_toolchain(
    whole: WholeToolchain,
    *,
    zig: Path,
    cache: Path,
    target: str,
    sdk_version: str,
    source: Path,
    python_include: Path,
) -> None:
    """Write `cc` and `c++` over the plain rehearsal's, and what the linker asks of an SDK.

    Args:
        source: the tree; its name in `__FILE__` is cut down to a neutral one.
        python_include: the folder of Python.h, as seen inside.
    """
    sdk = whole.sdk
    settings = {"CanonicalName": f"macosx{sdk_version}", "Version": sdk_version, "MaximumDeploymentTarget": "99.0"}
    # An equal file is left alone: the compiler names this one among an object's inputs.
    write_if_new(sdk.sdk / "SDKSettings.json", json.dumps(settings) + "\n")
    write_overlay(sdk.folder, include=python_include, free_threaded=False)
    words = {
        "zig": shlex.quote(str(zig)),
        "cache": shlex.quote(str(cache)),
        "include": shlex.quote(str(sdk.headers)),
        "objc": shlex.join(whole.objc),
        "frameworks": shlex.quote(str(sdk.sdk / "System/Library/Frameworks")),
        "overlay": shlex.quote(str(sdk.folder / "python-headers.json")),
        "sdk": shlex.quote(str(sdk.sdk)),
        "runtime": shlex.quote(str(whole.runtime)),
        "stubs": shlex.quote(str(sdk.stubs / "lib")),
        "target": target,
        "dropped": _DROPPED,
        "flags": shlex.join((*_COMPILE_FLAGS, f"-ffile-prefix-map={source}=pytorch")),
    }
    for name, mode, program in (("cc", "cc", "clang"), ("c++", "c++", "clang++")):
        # The runtime comes last: its own calls are libSystem's.
        system = "-lc++ -lSystem" if mode == "c++" else "-lSystem"
        driver = shlex.quote(str(whole.llvm / program))
        text = (_PROGRAM + _COMPILE).format(mode=mode, driver=driver, system=system, **words)
        write_if_new(sdk.tools / name, text, executable=True)
