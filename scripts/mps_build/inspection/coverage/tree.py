"""A source tree's operators: `Path -> Facts`, by the tree's own torchgen and its hand-written registrations."""

from __future__ import annotations

import re
import sys
from pathlib import Path
from typing import Any

from ...common.errors import MpsNotBuilt, SourceError
from ...common.json_text import parse_json
from ...common.process import Command, capture
from .hand_registrations import read_registrations
from .model import ByHand, Facts

CHILD = Path(__file__).with_name("torchgen_child.py")
NATIVE = "aten/src/ATen/native"
# What of a tree is read: enough to fetch of a commit that is not on the disk.
NEEDED = ("aten/src/ATen", "torch/csrc", "torchgen", "version.txt")
# Where MPS kernels are registered by hand: everywhere below these, in files that mention the key.
_SEARCHED = ("aten/src/ATen", "torch/csrc")
_CODE = frozenset({".mm", ".cpp", ".cc", ".h", ".hpp", ".metal", ".inl"})
_CHILD_SECONDS = 300.0


def facts_of_tree(root: Path, *, label: str | None = None) -> Facts:
    """Return what the tree's torchgen would register, and what its C++ files register for MPS themselves.

    Raises:
        SourceError: no PyTorch tree, or its torchgen fails.
        MpsNotBuilt: a tree from before MPS.
    """
    yaml = root / NATIVE / "native_functions.yaml"
    if not yaml.is_file():
        hint = "give the root of a PyTorch tree: the folder that holds aten/ and torchgen/"
        raise SourceError(f"{root}: is not PyTorch source tree: {NATIVE}/native_functions.yaml is missing", hint=hint)
    if not (root / "torchgen").is_dir():
        hint = "check out a release from 1.12 on"
        raise MpsNotBuilt(f"{root}: has no torchgen/, so it is older than 1.12, the first release with MPS", hint=hint)
    answer = ask_torchgen(root, yaml, yaml.with_name("tags.yaml"))
    version = _version(root)
    by_hand, notes = _by_hand(root)
    return Facts(
        label=label or f"PyTorch {version}, source",
        kind="source",
        version=version,
        registered={key: frozenset(names) for key, names in answer["registered"].items()},
        own=frozenset(answer["own"]),
        through=answer["through"],
        elsewhere={name: tuple(keys) for name, keys in answer["elsewhere"].items()},
        by_hand=by_hand,
        notes=notes,
    )


def ask_torchgen(root: Path, native_functions: Path, tags: Path) -> dict[str, Any]:
    """Return what the `torchgen` in `root` says of these files (torchgen_child.py tells the keys).

    Raises:
        SourceError: it fails; MpsNotBuilt: it knows no MPS.
    """
    # -I: nothing of the caller's PYTHONPATH and folder can be imported in the tree's place.
    argv = (sys.executable, "-I", "-B", str(CHILD), str(root), str(native_functions), str(tags))
    answer = capture(Command(argv=argv), timeout_seconds=_CHILD_SECONDS)
    if not answer.ok:
        said = (answer.stderr.strip().splitlines() or ["it did not answer"])[-1]
        hint = "a tree that was changed, or a torchgen that this Python cannot run: try the Python that builds it"
        raise SourceError(f"{root}/torchgen does not read {native_functions.name}: {said}", hint=hint)
    operators: dict[str, Any] = parse_json(answer.stdout)
    if not operators["registered"].get("MPS"):
        raise MpsNotBuilt(f"{native_functions} names no kernel for MPS", hint="the first release with MPS is 1.12")
    return operators


def _version(root: Path) -> str:
    file = root / "version.txt"
    text = file.read_text(encoding="utf-8", errors="replace").strip() if file.is_file() else ""
    return text if re.fullmatch(r"\d+\.[\w.+]+", text) else "of unknown version"


def _by_hand(root: Path) -> tuple[tuple[ByHand, ...], tuple[str, ...]]:
    """Return the registrations by hand in the tree, and what could not be read of them."""
    found: list[ByHand] = []
    unread: list[str] = []
    has_default = False
    for path in sorted(path for part in _SEARCHED for path in (root / part).rglob("*") if path.suffix in _CODE):
        data = path.read_bytes() if path.is_file() else b""
        if b"TORCH_LIBRARY_IMPL" not in data or b"MPS" not in data:
            continue
        read = read_registrations(path.relative_to(root).as_posix(), data.decode("utf-8", "replace"))
        found += read.found
        unread += read.unread
        has_default |= read.has_default
    notes = [f"a registration by hand that could not be read: {each}" for each in unread]
    if not has_default:
        notes.append("no fallback of the whole key was found: an operator without a kernel is refused")
    return tuple(found), tuple(notes)
