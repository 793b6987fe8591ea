"""A macOS that is only a shell: an SDK of empty frameworks, an xcrun that answers, zig as its compiler.

Enough for PyTorch's own CMakeLists to decide as on a Mac and for its C++ to become arm64 Mach-O; not
enough for one line of Objective-C++, which needs Apple's headers, or for Metal: the `metal` in here
writes a few words and ends well, because CMake looks at its exit code only.
"""

from __future__ import annotations

import shlex
from dataclasses import dataclass
from pathlib import Path

from mps_build.common.files import write_whole

from ..zig.files import write_if_new

SDK_VERSION = "15.2"
FRAMEWORKS = (
    "Metal",
    "MetalPerformanceShaders",
    "MetalPerformanceShadersGraph",
    "Foundation",
    "CoreFoundation",
    "Accelerate",
    "IOKit",
    "CoreServices",
)
# FindBLAS and FindLAPACK look for these in Accelerate; torch itself imports not all of them.
_ACCELERATE = (
    "_sgemm_ _dgemm_ _cgemm_ _zgemm_ _cheev_ _cgesdd_ _sdot_ _ddot_ _cdotu_ _zdotu_ _cblas_sgemm _cblas_dgemm "
    "_cblas_cdotc_sub _cblas_zdotc_sub _cblas_cdotu_sub _cblas_zdotu_sub _cblas_sdot _cblas_ddot"
)
ACCELERATE_PROBES = tuple(_ACCELERATE.split())
# Libraries that Debian's tree takes from the system: arm64 stubs of them, so that no x86 one gets in.
STUB_LIBRARIES: dict[str, tuple[str, ...]] = {
    "cpuinfo": (
        "cpuinfo_initialize",
        "cpuinfo_get_processors_count",
        "cpuinfo_get_cores_count",
        "cpuinfo_deinitialize",
        "cpuinfo_get_current_core",
    ),
    **dict.fromkeys(
        (
            "sleef",
            "pthreadpool",
            "onnx",
            "onnx_proto",
            "protobuf",
            "protobuf-lite",
            "cpp-httplib",
            "fmt",
            "XNNPACK",
            "microkernels-prod",
        ),
        (),
    ),
}
# Headers of the root's /usr/include that mean the same on a Mac; the folder itself must never be searched.
_HEADERS = (
    "fmt nlohmann cpuinfo.h clog.h sleef.h fp16 fp16.h fxdiv.h psimd.h eigen3 pybind11 google onnx flatbuffers "
    "httplib.h pthreadpool.h xnnpack.h moodycamel concurrentqueue absl valgrind"
)
_XCRUN = """\
#!/bin/sh
# Stands in for Apple's xcrun (mps-build): an SDK, and a `metal` that compiles nothing.
case "$*" in
  *--show-sdk-version*) echo {version}; exit 0 ;;
  *--show-sdk-path*) echo {sdk}; exit 0 ;;
esac
while [ $# -gt 0 ]; do
  case "$1" in
    --sdk|-sdk) shift 2 ;;
    --find|-f) shift; command -v "$1"; exit ;;
    *) break ;;
  esac
done
tool=$1; shift
case "$tool" in
  {metal})
    out=default.metallib
    while [ $# -gt 0 ]; do case "$1" in -o) out=$2; shift 2 ;; *) shift ;; esac; done
    echo "no Metal code: a fake $tool wrote this" > "$out"; exit 0 ;;
esac
echo "xcrun: error: unable to find utility \\"$tool\\", not a developer tool or in PATH" >&2
exit 72
"""
# Shell patterns of xcrun's tools that the fake plays.
_METAL = "metal|metallib"
_COMPILER = """\
#!/bin/bash
# zig {mode} for macOS arm64 (mps-build). CMake hands over folders of the host's headers: those are dropped,
# and the few that are needed come as links, behind all others.
export ZIG_GLOBAL_CACHE_DIR={cache} ZIG_LOCAL_CACHE_DIR={cache}/local
arguments=()
pending=
for each in "$@"; do
  if [ -n "$pending" ]; then
    case "$each" in /usr/include|/usr/include/*-linux-gnu) ;; *) arguments+=("$pending" "$each") ;; esac
    pending=
    continue
  fi
  case "$each" in
    -isystem|-idirafter) pending=$each ;;
    -I/usr/include|-I/usr/include/*-linux-gnu|-isystem/usr/include) ;;
    *) arguments+=("$each") ;;
  esac
done
# sleef's header in an x86-64 root declares nothing for arm64: PyTorch's branch without sleef is compiled instead.
exec {zig} {mode} -target aarch64-macos.{target} -fno-sanitize=undefined -idirafter {include} -F{frameworks} \\
  "${{arguments[@]}}" -UAT_BUILD_ARM_VEC256_WITH_SLEEF
"""
_TBD = """\
--- !tapi-tbd
tbd-version: 4
targets: [ x86_64-macos, arm64-macos ]
install-name: /System/Library/Frameworks/{name}.framework/Versions/A/{name}
current-version: 1
{exports}...
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class DarwinSdk:
    """Where the parts lie; all seen inside the root at the same path, but for `system`, which is its /System."""

    folder: Path

    @property
    def sdk(self) -> Path:
        """The stub SDK, in the place of MacOSX.sdk."""
        return self.folder / "sdk"

    @property
    def system(self) -> Path:
        """The imitated /System, which names a macOS version."""
        return self.folder / "System"

    @property
    def tools(self) -> Path:
        """The folder of imitated Apple tools, first on PATH."""
        return self.folder / "bin"

    @property
    def stubs(self) -> Path:
        """The folder of stub libraries to link against."""
        return self.folder / "stubs"

    @property
    def headers(self) -> Path:
        """The folder of headers that the SDK would bring."""
        return self.folder / "include"


def write_sdk(
    folder: Path,
    *,
    root: Path,
    zig: Path,
    cache: Path,
    target: str,
    version: str = SDK_VERSION,
    has_metal: bool = True,
    with_stubs: bool = True,
) -> DarwinSdk:
    """Write everything but the stub libraries, which only the compiler can make (`stub_commands`).

    Args:
        root: the Debian root, for what headers and LLVM tools it has.
        zig: the program, as seen inside.
        target: the oldest macOS, as 12.3.
        version: what xcrun says of the SDK, as 14.5.
        has_metal: whether xcrun finds a Metal compiler (a fake that compiles nothing).
        with_stubs: whether frameworks get text stubs that hold next to nothing; False leaves those that are there.
    """
    made = DarwinSdk(folder=folder)
    frameworks = Path("System/Library/Frameworks")
    for name in FRAMEWORKS:
        exports = f"exports:\n  - targets: [ arm64-macos ]\n    symbols: [ {', '.join(ACCELERATE_PROBES)} ]\n"
        text = _TBD.format(name=name, exports=exports if name == "Accelerate" else "")
        stub = made.sdk / frameworks / f"{name}.framework" / f"{name}.tbd"
        if with_stubs or not stub.is_file():
            write_whole(stub, text)
        (made.system / "Library" / "Frameworks" / f"{name}.framework" / "Versions" / "A").mkdir(
            parents=True, exist_ok=True
        )
    (made.sdk / "usr" / "lib").mkdir(parents=True, exist_ok=True)
    # zig's macOS headers lack this one; c10/util/signal_handler.cpp includes it and uses nothing of it on a Mac.
    write_if_new(made.headers / "sys" / "syscall.h", "/* empty on purpose (mps-build) */\n")
    # numpy's headers of this host ask for Linux's; a Mac's is in another folder.
    write_if_new(made.headers / "endian.h", "#include <machine/endian.h>\n")
    for name in _HEADERS.split():
        link = made.headers / name
        if (root / "usr/include" / name).exists() and not link.is_symlink():
            link.symlink_to(f"/usr/include/{name}")
    words = {
        "zig": shlex.quote(str(zig)),
        "cache": shlex.quote(str(cache)),
        "include": shlex.quote(str(made.headers)),
        "frameworks": shlex.quote(str(made.sdk / frameworks)),
        "target": target,
    }
    for name, mode in (("cc", "cc"), ("c++", "c++")):
        _program(made.tools / name, _COMPILER.format(mode=mode, **words))
    answers = {"version": version, "sdk": shlex.quote(str(made.sdk)), "metal": _METAL if has_metal else "-"}
    _program(made.tools / "xcrun", _XCRUN.format(**answers))
    for name, program in _llvm_tools(root).items():
        link = made.tools / name
        link.unlink(missing_ok=True)
        link.symlink_to(program)
    made.stubs.joinpath("lib").mkdir(parents=True, exist_ok=True)
    return made


def stub_sources(sdk: DarwinSdk) -> dict[Path, Path]:
    """Write a C file for each library that must be there for arm64, and return library -> its source."""
    made = {}
    for name, functions in STUB_LIBRARIES.items():
        source = sdk.stubs / f"{name}.c"
        unique = name.replace("-", "_")
        text = "".join(f"int {function}(void) {{ return 0; }}\n" for function in functions)
        write_whole(source, f"{text}int {unique}_stub;\n")
        made[sdk.stubs / "lib" / f"lib{name}.dylib"] = source
    return made


def _llvm_tools(root: Path) -> dict[str, str]:
    """Return the names that CMake looks for on a Mac, each with the root's LLVM program that does the same."""
    folder = next(iter(sorted(root.glob("usr/lib/llvm-*/bin"), reverse=True)), None)
    if folder is None:
        return {}
    inside = Path("/") / folder.relative_to(root)
    programs = {
        name: f"llvm-{name}"
        for name in ("ar", "nm", "objdump", "otool", "ranlib", "strip", "lipo", "install-name-tool")
    }
    programs |= {"libtool": "llvm-libtool-darwin", "dsymutil": "dsymutil"}
    found = {name: program for name, program in programs.items() if (folder / program).exists()}
    return {
        name.replace("install-name-tool", "install_name_tool"): str(inside / program) for name, program in found.items()
    }


def _program(path: Path, text: str) -> None:
    write_whole(path, text)
    path.chmod(0o755)
