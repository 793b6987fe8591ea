"""How the simulation compiles and links its host code, read from its ninja file; one file anew, one library anew."""

from __future__ import annotations

import json
import os
import re
import shlex
import subprocess
from dataclasses import dataclass
from pathlib import Path
from typing import Mapping, Sequence

LIBRARY = "libmps_simulated.so"
_EDGE = re.compile(r"^build (objects/\S+\.o): compile(?:_c)? (\S+)", re.MULTILINE)
# One compile takes 5 to 15 CPU seconds; a compiler that takes minutes has met a mutant that it cannot digest.
_SECONDS = 600


class BuildFailed(Exception):
    """A compiler or linker refused; the message is what it said."""


@dataclass(frozen=True)
class Toolchain:
    """The commands of one build.

    Attributes:
        folder: where the build lies. sources: the host's .mm, by their object's name. objects: all, as they are linked.
    """

    folder: Path
    compiler: tuple[str, ...]
    flags: tuple[str, ...]
    linker: tuple[str, ...]
    libraries: tuple[str, ...]
    sources: Mapping[str, Path]
    objects: tuple[str, ...]

    def compile(self, source: Path, target: Path, extra: Sequence[str] = ()) -> None:
        """Compile one Objective-C++ file as the build does.

        Raises:
            BuildFailed: with the compiler's first error.
        """
        words = ("-x", "objective-c++", "-O0", *extra, "-c", "-o", str(target), str(source))
        _run((*self.compiler, *self.flags, *words), self.folder)

    def link(self, folder: Path, replaced: Mapping[str, Path], added: Sequence[Path] = ()) -> Path:
        """Link the library into a folder of its own, with other objects in the place of some.

        Raises:
            BuildFailed: with the linker's first error.
        """
        objects = [str(replaced.get(name, self.folder / name)) for name in self.objects]
        listed = folder / "objects.list"
        listed.write_text("\n".join([*objects, *map(str, added)]), encoding="utf-8")
        library = folder / LIBRARY
        _run((*self.linker, "-o", str(library), f"@{listed}", *self.libraries), self.folder)
        return library


def read_toolchain(folder: Path) -> Toolchain:
    """Return the commands of the build in a folder."""
    text = (folder / "build.ninja").read_text(encoding="utf-8")
    edges = {name: Path(file.replace("$", "")) for name, file in _EDGE.findall(text)}
    link = _variable(text, "command", after="rule link")
    before, _, behind = link.partition(" -o ")
    libraries = [word for word in shlex.split(behind.partition("&&")[0]) if word.startswith("-l")]
    return Toolchain(
        folder=folder,
        compiler=tuple(shlex.split(_variable(text, "compiler"))),
        flags=tuple(shlex.split(_variable(text, "flags"))),
        linker=tuple(shlex.split(before)),
        libraries=tuple(libraries),
        sources={name: file for name, file in edges.items() if _is_host(file)},
        objects=tuple(edges),
    )


def host_name(source: Path) -> str:
    """Return a host file's name as a page says it: below aten/src/ATen.

    >>> host_name(Path("/x/aten/src/ATen/native/mps/operations/Eye.mm"))
    'native/mps/operations/Eye.mm'
    """
    return str(source).rpartition("/aten/src/ATen/")[2]


def built_folder() -> Path:
    """Return where the library lies of the simulated environment that this process is in.

    Raises:
        SystemExit: it is in none.
    """
    for entry in os.environ.get("LD_LIBRARY_PATH", "").split(os.pathsep):
        if (Path(entry) / "build.ninja").is_file() and (Path(entry) / LIBRARY).is_file():
            return Path(entry)
    raise SystemExit("start this in the simulation: nox -s simulate -- v2.6.0 -- python ...")


def root_of(folder: Path) -> Path:
    """Return the Debian root of a build."""
    return Path(json.loads((folder / "built.json").read_text(encoding="utf-8"))["root"])


def _is_host(file: Path) -> bool:
    return file.suffix == ".mm" and host_name(file).startswith(("mps/", "native/mps/"))


def _variable(text: str, name: str, after: str = "") -> str:
    found = re.search(rf"^ *{name} = (.*)$", text[text.index(after) :], re.MULTILINE)
    if found is None:
        raise SystemExit(f"build.ninja has no {name}")
    return found[1].replace("$$", "$")


def _run(argv: Sequence[str], folder: Path) -> None:
    try:
        done = subprocess.run(argv, cwd=folder, capture_output=True, text=True, timeout=_SECONDS, check=False)
    except subprocess.TimeoutExpired as late:
        raise BuildFailed(f"still running after {_SECONDS} s") from late
    if done.returncode:
        lines = [line for line in done.stderr.splitlines() if "error:" in line] or done.stderr.splitlines()[-1:]
        raise BuildFailed(lines[0] if lines else f"ended with {done.returncode}")
