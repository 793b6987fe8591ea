"""A wide precompiled header for a target of PyTorch, put in from outside: the source is not touched.

Nine tenths of a compile step of PyTorch is reading headers (docs/build/faster_builds.md), and
nearly every file reads the same ones. The header serves C++ only: Objective-C++ would need one of its own.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from mps_build.common.files import write_whole
from mps_build.common.json_text import read_json

from ..ninja import object_of

_HERE = Path(__file__).parent
LIST = "mps-build-without-wide-header.txt"
_FAILED = re.compile(r"^\s*FAILED: (?:\[[^\]]*\] )?(.+)$", re.MULTILINE)
_HEADER = re.compile(r"CMakeFiles/(?P<target>[^/]+)\.dir/cmake_pch\.hxx\.(?:pch|gch)$")


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


def exclude(build: Path, log_text: str) -> tuple[str, ...]:
    """Add the failed files that were compiled with a wide header to the build folder's list; return them.

    No list can know the files of every release that break (a name that becomes ambiguous, a template specialised after
    it was used). They are left out, and the build goes on: ninja compiles only those anew.

    A header that cannot be compiled itself (this release has no such file) leaves its whole target out. CMake reads
    the list again by itself, because every configure depends on it. Nothing is returned for a file that is on the
    list already: it fails for another reason.
    """
    path = build / LIST
    known = path.read_text(encoding="utf-8").split("\n") if path.is_file() else []
    failed = {output for outputs in _FAILED.findall(log_text) for output in outputs.split()}
    targets = {f"target:{match['target']}" for output in failed if (match := _HEADER.search(output))}
    new = tuple(sorted((targets | set(_sources(build, failed))) - set(known)))
    if new:
        write_whole(path, "\n".join([*filter(None, known), *new]) + "\n")
    return new


def _sources(build: Path, failed: Iterable[str]) -> Iterable[str]:
    """Yield the sources of failed objects whose compiler was given a precompiled header."""
    try:
        entries = read_json(build / "compile_commands.json", most_bytes=1 << 30)
    except (OSError, ValueError):
        return
    wanted = set(failed)
    for entry in entries:
        output = object_of(entry)
        if output in wanted and "cmake_pch.hxx" in entry["command"] and not _HEADER.search(output):
            yield entry["file"]
