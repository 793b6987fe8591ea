"""A wide precompiled header for a target of PyTorch, put in from outside: the source is not touched.

Nine tenths of a compile step of PyTorch is reading headers (docs/build/faster_builds.md), and
nearly every file reads the same ones. The header serves C++ only: Objective-C++ would need one of its own.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from mps_build.common.files import write_whole

_HERE = Path(__file__).parent


@dataclass(frozen=True, slots=True, kw_only=True)
class WideHeader:
    """A target, the header it gets, and the sources that break with it (regular expressions on their paths)."""

    target: str
    header: str
    excluded: tuple[str, ...]


TORCH_PYTHON = WideHeader(
    target="torch_python",
    header="torch_python.h",
    # Specialises a template that the header's precompiled instantiations already use.
    excluded=(r"/csrc/utils/object_ptr\.cpp$",),
)
TORCH_CPU = WideHeader(
    target="torch_cpu",
    header="torch_cpu.h",
    excluded=(
        r"/native/PixelShuffle\.cpp$",  # at::roll and at::native::roll: ambiguous once both are seen
        r"/native/TensorTransformations\.cpp$",  # the same
        r"/UfuncCPU_add\.cpp$",  # defines what the header has defined
        r"/core/TensorMethods\.cpp$",  # specialises after use, as object_ptr.cpp
        # Kernels compiled once per CPU capability, with flags and macros of their own: no header fits them all.
        r"\.(DEFAULT|AVX2|AVX512|SVE256|VSX|ZVECTOR)\.cpp$",
    ),
)

# For rehearsals alone: c10 is a twentieth of a build, and no profile was measured with it.
C10 = WideHeader(target="c10", header="c10.h", excluded=())


def wide_header_lines(headers: Iterable[WideHeader], folder: Path) -> str:
    """Return the CMake lines that give each target its header, copied to `folder`.

    For overrides.cmake: they run when configure ends, so that targets and their sources are known.
    """
    lines = [(_HERE / "wide_header.cmake").read_text(encoding="utf-8")]
    for each in headers:
        place = folder / each.header
        text = (_HERE / each.header).read_text(encoding="utf-8")
        if not place.is_file() or place.read_text(encoding="utf-8") != text:
            write_whole(place, text)
        patterns = "|".join(each.excluded) or "^$"
        lines.append(
            f'cmake_language(DEFER DIRECTORY "${{CMAKE_SOURCE_DIR}}" CALL mps_build_wide_header '
            f"{each.target} [==[{place}]==] [==[{patterns}]==])\n"
        )
    return "".join(lines)
