"""Whether a compiler cache hands the compiler every flag: ccache 4.11.2 drops `-Xpreprocessor -fopenmp`.

CMake asks Apple's clang for OpenMP by these two words, so every cached object would be compiled without OpenMP, and
only the audit would notice, an hour later. The installed ccache is tried, with a compiler that writes down its call.
"""

from __future__ import annotations

import tempfile
from pathlib import Path

from mps_build.common.errors import UsageError
from mps_build.common.files import write_whole
from mps_build.common.process import Command, capture

OPENMP = ("-Xpreprocessor", "-fopenmp")
_COMPILER = """\
#!/bin/sh
echo "$*" >> {calls}
for each; do case "$last" in -o) : > "$each" ;; esac; last=$each; done
"""


def check_flags_pass(launcher: Path | None, *, openmp: bool) -> None:
    """Refuse a ccache that would compile without the OpenMP that the recipe asks for.

    Args:
        launcher: the cache's program, or None.
        openmp: whether Apple's clang is asked for OpenMP.

    Raises:
        UsageError: naming the flags.
    """
    if launcher is None or not openmp or not launcher.name.startswith("ccache"):
        return
    lost = lost_flags(launcher, OPENMP)
    if lost:
        version = capture(Command(argv=(str(launcher), "--version"))).stdout.splitlines()
        named = version[0] if version else str(launcher)
        raise UsageError(
            f"--cache ccache: {named} drops {' '.join(lost)}, so that torch would be compiled without OpenMP",
            hint="as 4.11.2 (https://github.com/ccache/ccache/issues/1586): brew upgrade ccache, or --cache sccache",
        )


def lost_flags(launcher: Path, flags: tuple[str, ...]) -> tuple[str, ...]:
    """Return those of the flags that do not reach the compiler when a file is compiled through the cache."""
    with tempfile.TemporaryDirectory(prefix="mps-build-cache-") as name:
        folder = Path(name)
        calls, compiler = folder / "calls", folder / "compiler"
        write_whole(folder / "a.c", "int a;\n")
        write_whole(compiler, _COMPILER.format(calls=calls))
        compiler.chmod(0o755)
        # Not the caller's store or configuration: the trial must miss, and leave nothing behind.
        environ = {"PATH": "/usr/bin:/bin", "CCACHE_DIR": str(folder / "store"), "CCACHE_COMPILERTYPE": "clang"}
        argv = (str(launcher), str(compiler), *flags, "-c", "a.c", "-o", "a.o")
        capture(Command(argv=argv, cwd=folder, environ=environ), timeout_seconds=30)
        said = calls.read_text(encoding="utf-8").splitlines() if calls.is_file() else []
    compiled = [line.split() for line in said if "-E" not in line.split() and "a.c" in line.split()]
    return tuple(flag for flag in flags if any(flag not in words for words in compiled))
