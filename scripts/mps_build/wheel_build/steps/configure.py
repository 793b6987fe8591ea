"""Tree + environment -> a configured build folder, by whichever back end the release has."""

from __future__ import annotations

import re
import sys
from collections.abc import Mapping
from pathlib import Path

from mps_build.common.errors import GateError
from mps_build.common.files import write_whole
from mps_build.common.json_text import read_json
from mps_build.common.process import Command, CommandFailed, run_logged
from mps_build.common.reporter import Reporter

from ..backend import Backend, ConfigureRun, forwarded

FACTS = "mps-build-facts.json"
# What setup.py and FindPython remember of the interpreter; a further Python in one tree must not inherit it.
_PYTHON_ENTRY = re.compile(
    r"^_?(Python3?_|PYTHON|FIND_PACKAGE_MESSAGE_DETAILS_Python|NUMPY_|Numpy|PYBIND11_PYTHON)", re.I
)


def write_overrides(destination: Path, *, expect_mps: bool, profile_lines: str = "") -> Path:
    """Write the one CMake file that enters every configure of ours, and return it.

    An equal file is left as it is: ninja looks at its time, and would configure again.
    """
    template = (Path(__file__).parent / "overrides.cmake").read_text(encoding="utf-8")
    expected = f"set(MPS_BUILD_EXPECT_USE_MPS {'ON' if expect_mps else 'OFF'})\n"
    text = expected + profile_lines + template
    if not destination.is_file() or destination.read_text(encoding="utf-8") != text:
        write_whole(destination, text)
    return destination


def configure_command(
    backend: Backend, *, python: Path, source: Path, build: Path, environ: Mapping[str, str], overrides: Path
) -> Command:
    """Return the configure call of an era (releases_and_breakages: the two phases from 2.14 on)."""
    environ = {**environ, "MPS_BUILD_GATE_FOLLOWS": "1"}
    if backend == "setuptools":
        # setup.py forwards CMAKE_* variables as -D.
        whole = {**environ, "CMAKE_PROJECT_TOP_LEVEL_INCLUDES": str(overrides)}
        return Command(argv=(str(python), "setup.py", "build", "--cmake-only"), cwd=source, environ=whole)
    argv = (
        "cmake",
        "-GNinja",
        "-S",
        str(source),
        "-B",
        str(build),
        # The back end gives the same values: where the two calls differ, everything is compiled again.
        "-DCMAKE_BUILD_TYPE=Release",
        f"-DCMAKE_PROJECT_TOP_LEVEL_INCLUDES={overrides}",
        f"-DPython_EXECUTABLE={python}",
        *_architecture(environ),
        *(f"-D{name}={value}" for name, value in forwarded(environ).items()),
    )
    return Command(argv=argv, cwd=source, environ=environ)


def _architecture(environ: Mapping[str, str]) -> tuple[str, ...]:
    """Return what scikit-build-core derives from ARCHFLAGS on a Mac: it does so in its own call, so ours must too."""
    wanted = re.findall(r"-arch (\S+)", environ.get("ARCHFLAGS", "")) if sys.platform == "darwin" else []
    return (f"-DCMAKE_OSX_ARCHITECTURES={';'.join(wanted)}",) if wanted else ()


def configure(command: Command, *, build: Path, log: Path, reporter: Reporter, new_python: bool) -> ConfigureRun:
    """Run one configure and return what it left.

    Args:
        new_python: the tree was configured for another Python: what CMake remembers of it is dropped,
            and nothing else, so that libtorch is not built again.

    Raises:
        GateError: configure itself failed (the message holds its last lines), or never read overrides.cmake.
    """
    cache = build / "CMakeCache.txt"
    if new_python and cache.is_file():
        cache.write_text(without_python(cache.read_text(encoding="utf-8")), encoding="utf-8")
        (build / "build.ninja").unlink(missing_ok=True)
    (build / FACTS).unlink(missing_ok=True)
    log.unlink(missing_ok=True)
    reporter.started("Configure", unit="lines")
    count = 0

    def watch(line: str) -> None:
        nonlocal count
        count += 1
        reporter.advanced(count, note=line.strip()[:60])

    try:
        run_logged(command, log=log, on_line=watch)
    except CommandFailed as failure:
        text = "\n".join(failure.tail[-15:])
        error = GateError(f"configure failed ({failure}):\n{text}", hint=f"the whole output is in {log}")
        raise error from failure
    reporter.done()
    ran = read_run(build, log)
    if ran.facts is None:
        # Without overrides.cmake nothing would stop a build that the back end configures again with MPS off.
        raise GateError(
            f"configure ended without {FACTS}: it did not read our overrides.cmake, or did not run CMake at all",
            hint=f"CMAKE_PROJECT_TOP_LEVEL_INCLUDES takes CMake 3.24 or newer; the whole output is in {log}",
        )
    return ran


def read_run(build: Path, log: Path) -> ConfigureRun:
    """Return what a configure left behind."""
    facts = build / FACTS
    cache = build / "CMakeCache.txt"
    return ConfigureRun(
        log_text=log.read_text(encoding="utf-8", errors="replace"),
        cache_text=cache.read_text(encoding="utf-8", errors="replace") if cache.is_file() else "",
        facts=read_json(facts) if facts.is_file() else None,
        build=build,
    )


def without_python(cache_text: str) -> str:
    """Return a CMakeCache without the entries that name an interpreter, and without their comments.

    >>> without_python("//of A\\nA:BOOL=ON\\n//of P\\nPython_EXECUTABLE:FILEPATH=/x\\n_Python_H:INTERNAL=1\\n")
    '//of A\\nA:BOOL=ON\\n'
    """
    kept: list[str] = []
    for line in cache_text.split("\n"):
        if not _PYTHON_ENTRY.match(line):
            kept.append(line)
            continue
        while kept and kept[-1].startswith("//"):  # CMake refuses a comment without its entry
            kept.pop()
    return "\n".join(kept)
