"""Apple's frameworks for a cross build by zig: declarations and text stubs of our own, and an xcrun that answers.

Objective-C++ compiles and links against them, so a recipe with a `cross` part can build its MPS half on another system.
There is no Metal compiler: shaders stay source.
"""

from __future__ import annotations

import shlex
from dataclasses import dataclass
from pathlib import Path

from ..objc import write_frameworks, write_stubs
from ..objc.stubs import imports_of, known_releases, tbd
from .files import write_if_new

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
_ASKED_FOR = "MetalPerformanceShadersGraph"
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


@dataclass(frozen=True, slots=True, kw_only=True)
class AppleStandIn:
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


def write_apple(folder: Path) -> AppleStandIn:
    """Write declarations, stubs and xcrun below `folder`, which is CMake's root for what is looked up."""
    sdk, tools = folder / "sdk", folder / "apple"
    declared = write_frameworks(folder / "objc", sdk=SDK_VERSION)
    stubs = write_stubs(sdk, release=known_releases()[-1], extra={"libobjc.A": _ARC}, declared=True)
    (folder / "System/Library/Frameworks" / f"{_ASKED_FOR}.framework").mkdir(parents=True, exist_ok=True)
    # Not zig's own libc++, which it would compile first (110 s of CPU): a Mac has one, and it is what Xcode links. The
    # stub has the names that an official wheel for macOS 11 imports; any other, of a newer libc++, fails the link.
    cxx_library = folder / "libsystemcxx.tbd"
    write_if_new(cxx_library, tbd(_CXX, imports_of(_CXX_RELEASE)[_CXX]))
    answers = {"version": SDK_VERSION, "sdk": shlex.quote(str(sdk))}
    write_if_new(tools / "xcrun", _XCRUN.format(**answers), executable=True)
    return AppleStandIn(
        compile_flags=declared.flags,
        # Apple's Foundation brings these two along; the stub has its own names only.
        link_flags=(f"-F{stubs.frameworks}", "-framework", "CoreFoundation", f"-L{stubs.libraries}", "-lobjc"),
        cxx_library=cxx_library,
        tools=tools,
    )
