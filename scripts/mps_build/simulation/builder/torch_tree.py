"""A copy of the user's tree that torch is built in: the tree itself stays as it is."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from pathlib import Path

from mps_build.common.environment import fetch_environ
from mps_build.common.errors import SourceError
from mps_build.common.files import write_whole
from mps_build.common.git import git
from mps_build.common.json_text import read_json
from mps_build.common.process import capture

# Neither compiled nor imported; the host code is compiled from the tree itself, so that it makes nothing here stale.
_LEFT_OUT = ("test", "docs", "benchmarks", "binaries", "android", "ios", "debian/patches", "build", "dist", "work")
_OF_OTHERS = ("cutlass", "composable_kernel", "cudnn_frontend", "flash-attention", "aiter", "NVTX", "nccl", "fbgemm")
_NO_SOURCE = (".mm", ".metal", ".pyc", ".so", ".o", ".a")
# The program of the root writes it anew: the one in the tree is for another version of the library.
FLATBUFFERS = Path("torch/csrc/jit/serialization/mobile_bytecode_generated.h")
_SUBMODULE = "third_party/pybind11/CMakeLists.txt"  # of every release


def is_debian_tree(tree: Path) -> bool:
    """Return whether a tree is Debian's source package, which takes what is in third_party from the system.

    Raises:
        SourceError: it is a clone without its submodules.
    """
    if (tree / _SUBMODULE).is_file():
        return False
    if (tree / "debian/patches/series").is_file():
        return True
    raise SourceError(
        f"{tree} has no {_SUBMODULE}: torch cannot be built without its submodules",
        hint=f"git -C {tree} submodule update --init --recursive",
    )


def copied(tree: Path, target: Path, *, is_debian: bool) -> Path:
    """Return the copy, with the dates of what did not change: what was compiled from it stays fresh.

    Raises:
        SourceError: the tree has no file that is wanted.
    """
    record = target.with_name("copied.json")
    try:
        before: dict[str, list[int]] = read_json(record, most_bytes=1 << 26)
    except (OSError, ValueError):
        before = {}
    now: dict[str, list[int]] = {}
    for name in _files(tree):
        path = tree / name
        try:
            status = path.lstat()
        except OSError:
            continue  # git knows it, and it is gone
        now[name] = [status.st_size, status.st_mtime_ns]
        place = target / name
        if before.get(name) == now[name] and place.exists():
            continue
        place.parent.mkdir(parents=True, exist_ok=True)
        if path.is_symlink():
            place.unlink(missing_ok=True)
            place.symlink_to(path.readlink())
            continue
        if path.is_dir():
            continue  # a submodule that nobody needs
        if is_debian and Path(name) == FLATBUFFERS and place.is_file():
            continue
        data = path.read_bytes()
        if is_debian and name == "cmake/Dependencies.cmake":
            # Debian's patches name files of the system; here they lie in the root.
            data = data.replace(b'"/usr/include/', b'"${CMAKE_SYSROOT}/usr/include/')
        if not place.is_file() or place.read_bytes() != data:
            place.write_bytes(data)
            place.chmod(status.st_mode & 0o777 | 0o600)
    if not now:
        raise SourceError(f"{tree} has no file", hint="name the folder that holds setup.py: --source TREE")
    for gone in before.keys() - now.keys():
        (target / gone).unlink(missing_ok=True)
    write_whole(record, json.dumps(now))
    return target


def _files(tree: Path) -> Iterator[str]:
    """Yield the files of a tree that are wanted: what git knows or would add, all where there is no git."""
    for name in _known(tree) or _all(tree):
        parts = name.split("/")
        of_others = parts[0] == "third_party" and len(parts) > 1 and parts[1] in _OF_OTHERS
        if not of_others and not name.endswith(_NO_SOURCE) and not name.startswith(tuple(f"{e}/" for e in _LEFT_OUT)):
            yield name


def _known(tree: Path) -> list[str]:
    if not (tree / ".git").exists():
        return []
    found: list[str] = []
    environ = fetch_environ(os.environ)
    for words in (("--cached", "--recurse-submodules"), ("--others", "--exclude-per-directory=.gitignore")):
        answer = capture(git("-C", str(tree), "ls-files", "-z", *words, environ=environ), timeout_seconds=120)
        if not answer.ok:
            return []
        found += filter(None, answer.stdout.split("\0"))
    return list(dict.fromkeys(found))


def _all(tree: Path) -> Iterator[str]:
    for folder, names, files in os.walk(tree):
        names[:] = sorted(name for name in names if name not in (".git", ".pc", "__pycache__"))
        below = Path(folder).relative_to(tree)
        links = (name for name in names if (Path(folder) / name).is_symlink())  # walk does not enter them
        yield from (str(below / name) for name in sorted((*files, *links)))
