"""The headers that a build generates, for a tree that was not configured: torchgen's own, and CMake's few."""

from __future__ import annotations

import hashlib
import os
import re
import sys
from collections.abc import Iterator
from pathlib import Path

from mps_build.common.environment import fetch_environ
from mps_build.common.errors import SourceError
from mps_build.common.process import Command, capture
from mps_build.common.reporter import Reporter
from mps_build.common.workspace import remove_tree

from .tree import MpsTree

_GENERATED_FROM = ("torchgen/**/*.py", "aten/src/ATen/native/*.yaml", "aten/src/ATen/templates/*")
# What CMake's configure_file writes; an answer that no header depends on is 0.
_CONFIGURED = ("c10/macros", "aten/src/ATen", "caffe2/core", "torch/headeronly/macros", "torch/csrc/api/include/torch")
_ONE = frozenset({"AT_PARALLEL_NATIVE", "C10_BUILD_SHARED_LIBS", "AT_BUILD_WITH_BLAS", "AT_BUILD_WITH_LAPACK"})


def prepared_headers(tree: MpsTree, folder: Path, reporter: Reporter) -> tuple[Path, ...]:
    """Return the folders to look in before the tree's own; made once for each state of what they come from.

    Raises:
        SourceError: torchgen of this tree failed.
    """
    if tree.is_wheel:
        return ()
    home = folder / _digest(tree.root)
    if not home.is_dir():
        reporter.started("Generate headers with the tree's torchgen")
        beside = home.with_name(f".{home.name}.{os.getpid()}")
        remove_tree(beside)
        _generate(tree, beside)
        for path, text in configured(tree.root):
            (beside / path).parent.mkdir(parents=True, exist_ok=True)
            (beside / path).write_text(text, encoding="utf-8")
        try:
            beside.rename(home)
        except OSError:  # another run was first
            remove_tree(beside)
        reporter.done()
    return (home,)


def _digest(root: Path) -> str:
    digest = hashlib.sha256(f"2 {sys.version_info[:2]}".encode())
    paths = [path for pattern in _GENERATED_FROM for path in sorted(root.glob(pattern))]
    paths += sorted(path for each in _CONFIGURED for path in (root / each).glob("*.h.in"))
    for path in paths:
        if path.is_file():
            digest.update(os.fsencode(f"{path.relative_to(root)}\0"))
            digest.update(path.read_bytes())
    return digest.hexdigest()[:16]


def _generate(tree: MpsTree, folder: Path) -> None:
    script = (tree.root / "torchgen/gen.py").read_text(encoding="utf-8")
    mps = ("--mps",) if '"--mps"' in script else ()
    argv = (
        *(sys.executable, "-m", "torchgen.gen", "--source-path", str(tree.root / "aten/src/ATen")),
        *("--install_dir", str(folder / "ATen"), "--per-operator-headers", "--generate", "headers", *mps),
    )
    environ = {**fetch_environ(os.environ), "PYTHONPATH": str(tree.root), "PYTHONDONTWRITEBYTECODE": "1"}
    (folder / "ATen").mkdir(parents=True)
    made = capture(Command(argv=argv, cwd=folder, environ=environ), timeout_seconds=600)
    if not made.ok:
        last = made.stderr.strip().splitlines()[-1:] or [f"exit {made.exit}"]
        remove_tree(folder)
        if "No space left" in made.stderr:
            raise OSError(28, "No space left on device", str(folder))
        raise SourceError(
            f"torchgen of {tree.root} failed: {last[0]}",
            hint="does `python -m torchgen.gen` work in that tree? it needs pyyaml and typing-extensions",
        )


def configured(root: Path) -> Iterator[tuple[str, str]]:
    """Yield the headers that CMake would write from templates, as (path to include, text), all options off."""
    for folder in _CONFIGURED:
        for template in sorted((root / folder).glob("*.h.in")):
            text = template.read_text(encoding="utf-8")
            text = re.sub(r"^#cmakedefine (\w+).*$", r"/* #undef \1 */", text, flags=re.MULTILINE)
            text = re.sub(r"@(\w+)@", lambda match: str(int(match[1] in _ONE)), text)
            text = re.sub(r"\$\{\w+\}", "", text)
            path = f"{folder}/{template.name.removesuffix('.in')}".removeprefix("aten/src/")
            yield path.removeprefix("torch/csrc/api/include/"), text
