"""What a step was for: codegen, compile (of which folder), precompiled header, Metal, link, install."""

from __future__ import annotations

import posixpath
import re
from pathlib import PurePosixPath

from .graph import Edge

CONFIGURE, CODEGEN, HEADER, COMPILE = "configure", "codegen", "precompiled header", "compile"
METAL, LINK, INSTALL = "Metal", "link", "install"
PHASES = (CONFIGURE, CODEGEN, HEADER, COMPILE, METAL, LINK, INSTALL)
_OBJECT = re.compile(r"^(?P<folder>.*?)/?CMakeFiles/(?P<target>[^/]+)\.dir/(?P<rest>.+)\.(?:o|obj)$")
_LIBRARY = re.compile(r"\.(?:a|lib|so(?:\.[\d.]+)?|dylib|tbd|dll)$|\.cpython-[^/]+\.so$|^bin/[^/.]+$")
_METAL = re.compile(r"\.(?:air|metallib|metal)$|_metallib\.h$|\.metal\.o$")
_MOST_PARTS = 5


def phase_of(output: str, edge: Edge | None = None) -> str:
    """Return the phase; by the rule of the build file where there is one, else by the output's name alone.

    >>> phase_of("caffe2/CMakeFiles/torch_cpu.dir/__/aten/src/ATen/Context.cpp.o")
    'compile'
    >>> phase_of("lib/libtorch_cpu.dylib"), phase_of("caffe2/aten/src/ATen/kernels_basic.metallib")
    ('link', 'Metal')
    """
    rule = edge.rule if edge else ""
    if output.endswith("build.ninja") or rule == "RERUN_CMAKE":
        return CONFIGURE
    if _METAL.search(output) or any(each.endswith((".metal", ".air", ".metallib")) for each in _inputs(edge)):
        return METAL
    if output.endswith((".pch", ".gch")):
        return HEADER
    if "_COMPILER_" in rule or (not rule and output.endswith((".o", ".obj"))):
        return COMPILE
    if "_LINKER_" in rule or (not rule and _LIBRARY.search(output)):
        return LINK
    if re.search(r"(?:^|/)(?:install|CMakeFiles/install\.util|CMakeFiles/install)$", output):
        return INSTALL
    return CODEGEN


def _inputs(edge: Edge | None) -> tuple[str, ...]:
    return edge.explicit if edge else ()


def folder_of(output: str, edge: Edge | None = None, source: str | None = None) -> str:
    """Return the folder of the source that an object is made of, relative to the tree as far as that is known.

    CMake names an object after its source; where the build file is there, its own input is right in any case.

    >>> folder_of("caffe2/CMakeFiles/torch_cpu.dir/__/aten/src/ATen/native/Sorting.cpp.o")
    'aten/src/ATen/native'
    """
    if edge and edge.explicit and source:
        path = edge.explicit[0]
        if path.startswith(f"{source}/"):
            return _short(posixpath.dirname(path[len(source) + 1 :]))
    match = _OBJECT.match(output)
    if match is None:
        return _short(posixpath.dirname(output))
    rest = match["rest"].replace("__/", "../")
    return _short(posixpath.dirname(posixpath.normpath(posixpath.join(match["folder"], rest))))


def _short(folder: str) -> str:
    parts = PurePosixPath(folder).parts
    return "/".join(part for part in parts[:_MOST_PARTS] if part != "/") or "."


def target_of(output: str) -> str | None:
    """Return the CMake target that an object belongs to."""
    match = _OBJECT.match(output)
    return match["target"] if match else None
