"""PyTorch configured in one way or another, with each compiler's CPU time on record."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path

from mps_build.common.process import Command, run_logged
from mps_build.wheel_build.rehearsal.session import Prepared, Rehearsal
from mps_build.wheel_build.wide_headers import TORCH_CPU, TORCH_PYTHON, wide_header_lines

LAUNCHER = """\
#!/usr/bin/python3 -SE
import os, resource, sys
pid = os.spawnvp(os.P_NOWAIT, sys.argv[1], sys.argv[1:])
_, status = os.waitpid(pid, 0)
used = resource.getrusage(resource.RUSAGE_CHILDREN)
output = sys.argv[sys.argv.index("-o") + 1] if "-o" in sys.argv else "-"
with open(os.environ["COMPILE_TIMES"], "a") as file:
    file.write("%s\\t%.3f\\n" % (output, used.ru_utime + used.ru_stime))
sys.exit(os.waitstatus_to_exitcode(status))
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Way:
    """One way to compile: the optimisation level, whether with the wide headers.

    `plain`: the header's templates stay uninstantiated, so that an object holds what it would hold without it.
    `lines`: CMake lines of its own, for overrides.cmake.
    """

    name: str
    level: str
    headers: bool
    plain: bool = False
    lines: str = ""


def configure(rehearsal: Rehearsal, ready: Prepared, way: Way, launcher: Path) -> Path:
    """Configure the one build folder for this way; what the ways share (generated sources) is made once."""
    build = rehearsal.workspace.root / "build"
    build.mkdir(parents=True, exist_ok=True)
    folder = rehearsal.workspace.root
    lines = wide_header_lines((TORCH_CPU, TORCH_PYTHON), folder) if way.headers else ""
    instantiate = "OFF" if way.plain else "ON"
    lines = f'{way.lines}set(CMAKE_PCH_INSTANTIATE_TEMPLATES {instantiate} CACHE BOOL "" FORCE)\n{lines}'
    (folder / "overrides.cmake").write_text(lines, encoding="utf-8")
    defines = {variable.name: variable.value for variable in ready.recipe.environment}
    defines |= {
        # Release appends -O2 by itself; MinSizeRel takes the level that is given.
        "CMAKE_BUILD_TYPE": "Release" if way.level == "-O2" else "MinSizeRel",
        "CMAKE_CXX_FLAGS_MINSIZEREL": f"{way.level} -DNDEBUG",
        "CMAKE_C_FLAGS_MINSIZEREL": f"{way.level} -DNDEBUG",
        "CMAKE_CXX_COMPILER_LAUNCHER": str(launcher),
        "CMAKE_PROJECT_TOP_LEVEL_INCLUDES": str(folder / "overrides.cmake"),
        "CMAKE_INSTALL_PREFIX": str(ready.tree.root / "torch"),
        "BUILD_PYTHON": "True",
        "BUILD_TEST": "False",
        "USE_NUMPY": "True",
        "TORCH_BUILD_VERSION": ready.recipe.version,
        "Python_EXECUTABLE": str(ready.python),
    }
    given = (f"-D{name}={value}" for name, value in defines.items())
    argv = ("cmake", "-GNinja", "-S", str(ready.tree.root), "-B", str(build), *given)
    environ = {**ready.environ, "COMPILE_TIMES": os.devnull}
    run_logged(
        ready.wrap(Command(argv=argv, cwd=ready.tree.root, environ=environ)), log=rehearsal.log(f"configure-{way.name}")
    )
    return build
