"""What a `.mm` is compiled against: a PyTorch tree, or an official wheel's headers; and with what flags."""

from __future__ import annotations

import hashlib
import os
import re
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from mps_build.common.environment import fetch_environ
from mps_build.common.errors import SourceError
from mps_build.common.process import Command, capture
from mps_build.common.reporting import Reporter
from mps_build.common.wheels.naming import parse_wheel_name
from mps_build.common.wheels.wheel_file import UnsoundWheel, open_wheel
from mps_build.common.workspace import remove_tree

MPS_FOLDERS = ("aten/src/ATen/mps", "aten/src/ATen/native/mps")
_STANDARD = re.compile(r"set\(CMAKE_CXX_STANDARD\s+(\d\d)")
_WHEEL_STANDARD = re.compile(r"cxx_std_(\d\d)|CXX_STANDARD\s+(\d\d)")
_OBJCXX = re.compile(r'APPEND\s+CMAKE_OBJCXX_FLAGS\s+"([^"]*)"')
# A wheel's headers stand for a tree; of the rest only what says how they want to be compiled.
_OF_WHEEL = ("torch/include/", "torch/share/cmake/Torch/")
_MOST_BYTES = 512 << 20  # 60 MB in 2.15.0
_GENERATED_FROM = ("torchgen/**/*.py", "aten/src/ATen/native/*.yaml", "aten/src/ATen/templates/*")
# What CMake's configure_file writes; an answer that no header depends on is 0.
_CONFIGURED = ("c10/macros", "aten/src/ATen", "caffe2/core", "torch/headeronly/macros", "torch/csrc/api/include/torch")
_ONE = frozenset({"AT_PARALLEL_NATIVE", "C10_BUILD_SHARED_LIBS", "AT_BUILD_WITH_BLAS", "AT_BUILD_WITH_LAPACK"})


@dataclass(frozen=True, slots=True, kw_only=True)
class MpsTree:
    """A tree (or a wheel's `include` folder) with MPS: where its headers lie, and its own flags for Objective-C++."""

    root: Path
    release: str
    standard: str
    flags: tuple[str, ...]
    include: tuple[Path, ...]
    is_wheel: bool = False

    @property
    def folders(self) -> tuple[Path, ...]:
        """Return the folders whose code checks the version of macOS and is called by others."""
        bases = ("ATen/mps", "ATen/native/mps") if self.is_wheel else MPS_FOLDERS
        return tuple(self.root / each for each in bases)


def find_tree(path: Path) -> Path | None:
    """Return the tree that a file lies in, if it lies in one."""
    return next((each for each in path.resolve().parents if (each / MPS_FOLDERS[0]).is_dir()), None)


def read_tree(root: Path) -> MpsTree:
    """Return what a source tree says of itself; it need not be configured.

    Raises:
        SourceError: not PyTorch, or without MPS.
    """
    lists = root / "CMakeLists.txt"
    if not (root / "aten/src/ATen/native/native_functions.yaml").is_file() or not lists.is_file():
        raise SourceError(
            f"{root} is not a PyTorch tree: aten/src/ATen/native/native_functions.yaml is missing",
            hint="name the folder that holds setup.py: --source TREE",
        )
    missing = [each for each in MPS_FOLDERS if not (root / each).is_dir()]
    if missing:
        raise SourceError(
            f"{root} is PyTorch without MPS: {missing[0]} is missing",
            hint="MPS is there from 1.12 on; a sparse checkout needs aten, c10, torch, torchgen and caffe2",
        )
    text = lists.read_text(encoding="utf-8", errors="replace")
    standard = _STANDARD.search(text)
    own = [flag for group in _OBJCXX.findall(text) for flag in group.split()]
    flags: dict[str, str | None] = dict.fromkeys(
        ["-DUSE_MPS", *(flag for flag in own if not flag.startswith("-Wno-unguarded"))]
    )
    if not own and "-Wno-narrowing" in text:  # up to 1.13 a .mm was compiled as C++, with C++'s flags
        flags["-Wno-narrowing"] = None
    version = root / "version.txt"
    return MpsTree(
        root=root,
        release=re.split(r"a|\+|\.dev", version.read_text(encoding="utf-8").strip())[0] if version.is_file() else "",
        standard=standard[1] if standard else "17",
        flags=tuple(flags),
        include=tuple(
            path
            for path in (
                root / "aten/src",
                root,
                root / "torch/csrc/api/include",
                root / "third_party/fmt/include",
                root / "third_party/nlohmann/include",
                root / "third_party/cpuinfo/include",
            )
            if path.is_dir()
        ),
    )


def read_wheel_headers(wheel: Path, folder: Path) -> MpsTree:
    """Return the headers of a wheel, unpacked to `folder` once, as what a file is compiled against.

    Raises:
        SourceError: not a wheel of torch with MPS headers.
    """
    name = parse_wheel_name(wheel.name)
    home = folder / wheel.stem
    if name is None or name.distribution != "torch":
        raise SourceError(f"{wheel} is not a wheel of torch", hint="--source TREE, or torch-….whl for macOS arm64")
    if not home.is_dir():
        beside = home.with_name(f".{home.name}.unpacking")
        remove_tree(beside)
        try:
            with open_wheel(wheel) as members:
                names = [each for each in members.names if each.startswith(_OF_WHEEL) and ".." not in each]
                files = (each for each in names if not each.endswith("/"))
                for file, data in members.read_all(files, most_bytes=_MOST_BYTES):
                    (beside / file).parent.mkdir(parents=True, exist_ok=True)
                    (beside / file).write_bytes(data)
        except (OSError, UnsoundWheel) as error:
            if isinstance(error, OSError) and error.errno:
                raise
            raise SourceError(f"{wheel} cannot be read: {error}", hint="download it again") from error
        beside.rename(home)
    include = home / "torch/include"
    if not (include / "ATen/native/mps/OperationUtils.h").is_file():
        raise SourceError(
            f"{wheel.name} has no MPS headers (ATen/native/mps/OperationUtils.h)",
            hint="wheels for macOS arm64 have them from 2.1 on; for older releases give a tree: --source TREE",
        )
    config = home / "torch/share/cmake/Torch/TorchConfig.cmake"
    found = _WHEEL_STANDARD.findall(config.read_text(encoding="utf-8")) if config.is_file() else []
    return MpsTree(
        root=include,
        release=name.version.split("+")[0],
        standard=next((one or two for one, two in reversed(found)), "17"),
        flags=("-DUSE_MPS", "-fno-objc-arc"),
        include=(include, include / "torch/csrc/api/include"),
        is_wheel=True,
    )


# The headers that a build generates, for a tree that was not configured: torchgen's own, and CMake's few.


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
