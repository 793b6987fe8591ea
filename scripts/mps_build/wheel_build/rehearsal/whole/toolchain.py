"""The compilers of a whole rehearsal: zig compiles, LLD links, both behind the names that CMake and setup.py call."""

from __future__ import annotations

import json
import plistlib
import re
import shlex
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path

from mps_build.common.errors import BuildEnvironmentError
from mps_build.common.files import write_whole
from mps_build.common.process import Command, capture
from mps_build.common.receipts import digest_of

from ...objc import Stubs, write_stubs
from ...zig.files import write_if_new, write_overlay
from ..chroot import Chroot
from ..darwin import PROBE, run_in_root
from ..darwin_sdk import ACCELERATE_PROBES, DarwinSdk
from ..session import Rehearsal

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
    # A precompiled header with its inputs' times in it would never be the same again for a compiler cache.
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
MODULE = "_mps_build_sysconfigdata"
_SITE = """\
# Written by mps-build: this interpreter builds for macOS arm64, and answers as one that runs there.
import os
import sys
import types

if os.environ.get("MPS_BUILD_AS_DARWIN"):
    sys.platform = "darwin"
    os.uname = lambda: os.uname_result(("Darwin", "rehearsal", {darwin!r}, "Darwin Kernel", "arm64"))
    # urllib.request asks it for proxies; those of the environment are used all the same.
    proxies = types.ModuleType("_scproxy")
    proxies._get_proxies = dict
    proxies._get_proxy_settings = dict
    sys.modules["_scproxy"] = proxies
"""
_DATA = """\
# Written by mps-build: what a Mac's Python says about its own build, over this host's.
import importlib
import sys

host = importlib.import_module(f"_sysconfigdata__linux_{{sys.implementation._multiarch}}")
tag = f"cpython-{{sys.version_info[0]}}{{sys.version_info[1]}}-darwin"
build_time_vars = {{
    **host.build_time_vars,
    "AR": {tools!r} + "/ar",
    "BLDSHARED": {tools!r} + "/cc -bundle -undefined dynamic_lookup",
    "CC": {tools!r} + "/cc",
    "CCSHARED": "",
    "CFLAGS": "-fno-strict-overflow -DNDEBUG -O0",
    "CPPFLAGS": "",
    "CXX": {tools!r} + "/c++",
    "EXT_SUFFIX": f".{{tag}}.so",
    "LDCXXSHARED": {tools!r} + "/c++ -bundle -undefined dynamic_lookup",
    "LDFLAGS": "",
    "LDSHARED": {tools!r} + "/cc -bundle -undefined dynamic_lookup",
    "MACOSX_DEPLOYMENT_TARGET": {target!r},
    "MULTIARCH": "darwin",
    "OPT": "",
    "PY_CFLAGS": "",
    "PY_CORE_CFLAGS": "",
    "SHLIB_SUFFIX": ".so",
    "SOABI": tag,
}}
"""
_OTOOL = """\
#!/bin/sh
# otool for delocate and setup.py (mps-build): LLVM's knows no -m, which means a file whose name has brackets.
for each; do
  shift
  case "$each" in -m) ;; *) set -- "$@" "$each" ;; esac
done
exec {llvm}/llvm-otool "$@"
"""
_CODESIGN = """\
#!/bin/sh
# codesign for delocate (mps-build). LLD and LLVM's install_name_tool sign ad hoc whatever they write, so that there is
# nothing left to do; a file without a signature is refused, and the audit checks every page's hash.
for file; do :; done
if {llvm}/llvm-otool -l "$file" | grep -q LC_CODE_SIGNATURE; then exit 0; fi
echo "$file: code object is not signed at all" >&2
exit 1
"""
_SW_VERS = """\
#!/bin/sh
# CMake asks which macOS this is, and without an answer knows no rpaths (mps-build).
case "$1" in -productVersion) echo {macos} ;; *) printf 'ProductName:\\tmacOS\\nProductVersion:\\t{macos}\\n' ;; esac
"""
_ARCHIVES = ("libc++.a", "libc++abi.a")
RUNTIME = Path(__file__).with_name("runtime.c")
_MACHO_64 = b"\xcf\xfa\xed\xfe"
_BLOCK = re.compile(r"^  - targets: +\[(?P<targets>[^\]]*)\]\n(?P<body>(?:    [^\n]*\n)+)", re.MULTILINE)
_NAMES = re.compile(
    r"^    (?P<kind>symbols|weak-symbols|thread-local-symbols|objc-classes): +\[(?P<names>[^\]]*)\]", re.MULTILINE
)
_OF_A_CLASS = ("_OBJC_CLASS_$_", "_OBJC_METACLASS_$_")
_ARM64 = ("arm64-macos", "arm64e-macos")


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


# A Python that says it is a Mac's: what setup.py asks of its interpreter, answered for macOS arm64.
#
# setup.py of the setuptools era looks at the host for what it builds for: `sys.platform`, `os.uname()`, the suffix of
# extension modules, the compiler that made Python. CPython has its own way for a cross build (a `_sysconfigdata`
# module by `_PYTHON_SYSCONFIGDATA_NAME`); the rest is a `sitecustomize`.


def write_darwin_python(
    folder: Path, *, tools: Path, target: str, darwin: str, system: Path, macos: str
) -> dict[str, str]:
    """Write the two modules to `folder` and macOS's own version file below `system`; return the variables for it.

    Args:
        tools: the folder of `cc` and `c++`.
        target: the deployment target, as 13.0.
        darwin: the kernel's version, as 22.0.0.
        system: what is seen as /System.
        macos: the version that this macOS claims, as 14.5.
    """
    write_whole(folder / "sitecustomize.py", _SITE.format(darwin=darwin))
    write_whole(folder / f"{MODULE}.py", _DATA.format(tools=str(tools), target=target))
    version = plistlib.dumps({"ProductName": "macOS", "ProductVersion": macos, "ProductBuildVersion": "rehearsal"})
    write_whole(system / "Library" / "CoreServices" / "SystemVersion.plist", version.decode())
    return {
        "MPS_BUILD_AS_DARWIN": "1",
        "_PYTHON_SYSCONFIGDATA_NAME": MODULE,
        "_PYTHON_HOST_PLATFORM": f"macosx-{target}-arm64",
        "MACOSX_DEPLOYMENT_TARGET": target,
    }


# Programs that setup.py and delocate call on a Mac, with LLVM's behind them.


def write_mac_tools(folder: Path, *, llvm: Path, macos: str) -> None:
    """Write `otool`, `codesign` and `sw_vers` to `folder`; install_name_tool, lipo and ar are there as links.

    Args:
        llvm: the folder of LLVM's programs, as seen inside the root.
        macos: the version that this macOS claims, as 14.5.
    """
    words = {"llvm": shlex.quote(str(llvm)), "macos": macos}
    for name, text in (("otool", _OTOOL), ("codesign", _CODESIGN), ("sw_vers", _SW_VERS)):
        place = folder / name
        if place.is_symlink():
            place.unlink()
        write_if_new(place, text.format(**words), executable=True)


# libSystem, libc++ and the compiler's runtime for the linker: names out of zig's own package and cache, and ours.


def write_system_stubs(
    rehearsal: Rehearsal, chroot: Chroot, whole: WholeToolchain, *, zig: Path, cache: Path
) -> tuple[Path, ...]:
    """Write the text stubs of macOS's libraries and compile the runtime; return the files.

    Every name of zig's libSystem.tbd is in the stub (LLD cannot read zig's own file, which names newer processors);
    libc++'s are those that zig's libc++ defines.

    Raises:
        BuildEnvironmentError: zig made no archive for this target, or its libSystem.tbd cannot be read.
    """
    system = zig.parent / "lib/libc/darwin/libSystem.tbd"
    try:
        names = exported_names(system.read_text(encoding="utf-8"))
    except OSError as error:
        raise BuildEnvironmentError(
            f"zig's list of libSystem: {error}", hint="remove ziglang from the cache"
        ) from error
    probe = whole.sdk.folder / "probe.cpp"
    write_whole(probe, PROBE)
    # Compiled and linked by zig in one call, so that it makes its archives.
    run_in_root(rehearsal, chroot, (str(whole.sdk.tools / "c++"), "-shared", str(probe), "-o", f"{probe}.dylib"))
    found = {name: _newest(cache, name) for name in _ARCHIVES}
    listed = _list(chroot, whole.llvm, (found["libc++.a"], found["libc++abi.a"]))
    more = {"libSystem.B": names, "libc++.1": listed}
    stubs = write_linker_stubs(whole.sdk.sdk, release=rehearsal.recipe.version, more=more)
    system_stub = stubs.libraries / "libSystem.tbd"
    for alias in ("libm", "libpthread", "libdl", "libc"):
        write_whole(stubs.libraries / f"{alias}.tbd", system_stub.read_text(encoding="utf-8"))
    source, compiled = whole.runtime.with_suffix(".c"), whole.runtime.with_suffix(".o")
    write_whole(source, RUNTIME.read_bytes())
    whole.runtime.unlink(missing_ok=True)
    for tool, *words in (("cc", "-c", "-O1", "-o", compiled, source), ("ar", "rcs", whole.runtime, compiled)):
        run_in_root(rehearsal, chroot, (str(whole.sdk.tools / str(tool)), *map(str, words)))
    return (whole.runtime, *sorted(whole.sdk.sdk.rglob("*.tbd")))


def write_linker_stubs(sdk: Path, *, release: str, more: Mapping[str, Iterable[str]]) -> Stubs:
    """Write the stub SDK's libraries: configure finds BLAS and LAPACK in them, and the linker torch's imports.

    Frameworks and libobjc know what the official wheel imports, Accelerate what configure probes for as well: another
    name stops the link.

    Args:
        more: names of the libraries that compiled code calls by itself, as `write_stubs` takes them.
    """
    return write_stubs(sdk, release=release, extra={**more, "Accelerate": ACCELERATE_PROBES})


def _newest(cache: Path, name: str) -> Path:
    """Return the archive of that name that zig made last for a Mac."""
    archives = sorted(cache.glob(f"o/*/{name}"), key=lambda path: path.stat().st_mtime, reverse=True)
    for archive in archives:
        if _MACHO_64 in archive.read_bytes()[: 1 << 20]:
            return archive
    raise BuildEnvironmentError(
        f"zig left no {name} for macOS in {cache}", hint=f"remove {cache} and run the same command again"
    )


def _list(chroot: Chroot, llvm: Path, archives: tuple[Path, ...]) -> frozenset[str]:
    argv = (str(llvm / "llvm-nm"), "--defined-only", "--extern-only", "--format=just-symbols", *map(str, archives))
    answer = capture(chroot.inside(Command(argv=argv)), timeout_seconds=120)
    if not answer.ok:
        raise BuildEnvironmentError(f"llvm-nm cannot read zig's libc++: {answer.stderr.strip()}")
    return parse_defined(answer.stdout)


# Which names a system library has: read from a text stub (tapi), or from llvm-nm's list of archives.


def exported_names(text: str) -> frozenset[str]:
    """Return what a text stub, its reexported libraries included, exports for macOS on arm64.

    >>> sorted(exported_names("exports:\\n  - targets:  [ arm64e-macos ]\\n    symbols:  [ _a, '$ld$x', _b ]\\n"))
    ['_a', '_b']
    """
    found: set[str] = set()
    for block in _BLOCK.finditer(text):
        targets = {target.strip() for target in block["targets"].split(",")}
        if targets.isdisjoint(_ARM64):
            continue
        for match in _NAMES.finditer(block["body"]):
            names = [name.strip().strip("'\"") for name in match["names"].split(",")]
            if match["kind"] == "objc-classes":
                names = [prefix + name for name in names for prefix in _OF_A_CLASS]
            found.update(names)
    return frozenset(name for name in found if name and not name.startswith("$"))


def parse_defined(nm: str) -> frozenset[str]:
    r"""Return the names that `llvm-nm --defined-only --extern-only --format=just-symbols` lists of archives.

    >>> sorted(parse_defined("\nstring.o:\n__ZNSt3__1a\n\nx.o:\n_b\n"))
    ['__ZNSt3__1a', '_b']
    """
    return frozenset(line for line in nm.splitlines() if line and not line.endswith(":"))


def parse_external(nm: Iterable[str]) -> tuple[frozenset[str], frozenset[str]]:
    r"""Return the names that files want and those that they define, as `llvm-nm --extern-only --format=posix` prints.

    >>> wanted, defined = parse_external(["a.o:", "_f T 1c 0", "_g U 0 0", "", "b.o:", "_g S 20 0"])
    >>> sorted(wanted), sorted(defined)
    (['_g'], ['_f', '_g'])
    """
    wanted: set[str] = set()
    defined: set[str] = set()
    for line in nm:  # two million of them
        name, _, kind = line.partition(" ")
        if kind:
            (wanted if kind.startswith("U") else defined).add(name)
    return frozenset(wanted), frozenset(defined)
