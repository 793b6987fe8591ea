"""Write the headers to a folder."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from mps_build.common.files import write_whole

from .headers import header
from .model import cut_to_sdk, load_frameworks
from .sdk import prefix_header


@dataclass(frozen=True, slots=True, kw_only=True)
class Frameworks:
    """Where the headers lie. `flags` are what a compiler needs, after its own: zig's headers must win."""

    include: Path
    prefix: Path

    @property
    def flags(self) -> tuple[str, ...]:
        return ("-include", str(self.prefix), "-idirafter", str(self.include))


def write_frameworks(folder: Path, *, sdk: str | None = None) -> Frameworks:
    """Write a header for each framework to `folder`/include, as <Metal/Metal.h>, and return where.

    Args:
        sdk: the macOS SDK to behave as, as 14.5: what is newer is not declared, and __MAC_* of newer ones are
            undefined by the prefix header. None: everything that is known.
    """
    include = folder / "include"
    before = cut_to_sdk(load_frameworks(), sdk)
    for index, framework in enumerate(before):
        if framework.name == "os":
            write_whole(include / "os" / "log.h", "#pragma once\n#include <os/mps_build_os.h>\n")
            write_whole(include / "os" / "signpost.h", "#pragma once\n#include <os/mps_build_os.h>\n")
        name = "mps_build_os.h" if framework.name == "os" else f"{framework.name}.h"
        write_whole(include / framework.name / name, header(framework, before[:index]))
    for path, text in _SMALL.items():
        write_whole(include / path, text)
    prefix = folder / "mps_build_sdk.h"
    write_whole(prefix, prefix_header(sdk))
    return Frameworks(include=include, prefix=prefix)


_SMALL = {
    # PyTorch includes this one by name.
    "MetalPerformanceShadersGraph/MPSGraphRNNOps.h": (
        "#pragma once\n#include <MetalPerformanceShadersGraph/MetalPerformanceShadersGraph.h>\n"
    ),
    "IOKit/IOKitLib.h": "#pragma once\n#include <IOKit/IOKit.h>\n",
    # zig's macOS headers lack it; c10/util/signal_handler.cpp includes it and uses nothing of it on a Mac.
    "sys/syscall.h": "#pragma once\n",
}
