"""Write the headers to a folder."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from ..zig.files import write_if_new
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
        """The compiler's options that make these headers found, after the toolchain's own."""
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
            _write(include / "os" / "log.h", "#pragma once\n#include <os/mps_build_os.h>\n")
            _write(include / "os" / "signpost.h", "#pragma once\n#include <os/mps_build_os.h>\n")
        name = "mps_build_os.h" if framework.name == "os" else f"{framework.name}.h"
        _write(include / framework.name / name, header(framework, before[:index]))
    for path, text in _SMALL.items():
        _write(include / path, text)
    prefix = folder / "mps_build_sdk.h"
    _write(prefix, prefix_header(sdk))
    return Frameworks(include=include, prefix=prefix)


def _write(path: Path, text: str) -> None:
    """Write a file unless it says so already: what was compiled from it stays fresh."""
    if not path.is_file() or path.read_text(encoding="utf-8") != text:
        write_if_new(path, text)


_SMALL = {
    # PyTorch includes this one by name.
    "MetalPerformanceShadersGraph/MPSGraphRNNOps.h": (
        "#pragma once\n#include <MetalPerformanceShadersGraph/MetalPerformanceShadersGraph.h>\n"
    ),
    "IOKit/IOKitLib.h": "#pragma once\n#include <IOKit/IOKit.h>\n",
    # zig's macOS headers lack it; c10/util/signal_handler.cpp includes it and uses nothing of it on a Mac.
    "sys/syscall.h": "#pragma once\n",
}
