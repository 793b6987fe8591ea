"""What a `.mm` is compiled against: a PyTorch tree, or an official wheel's headers; and with what flags."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

from mps_build.common.errors import SourceError
from mps_build.common.wheels.members import UnsoundWheel, open_wheel
from mps_build.common.wheels.naming import parse_wheel_name
from mps_build.common.workspace import remove_tree

MPS_FOLDERS = ("aten/src/ATen/mps", "aten/src/ATen/native/mps")
_STANDARD = re.compile(r"set\(CMAKE_CXX_STANDARD\s+(\d\d)")
_WHEEL_STANDARD = re.compile(r"cxx_std_(\d\d)|CXX_STANDARD\s+(\d\d)")
_OBJCXX = re.compile(r'APPEND\s+CMAKE_OBJCXX_FLAGS\s+"([^"]*)"')
# A wheel's headers stand for a tree; of the rest only what says how they want to be compiled.
_OF_WHEEL = ("torch/include/", "torch/share/cmake/Torch/")
_MOST_BYTES = 512 << 20  # 60 MB in 2.15.0


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
        """Return the folders whose code asks for the version of macOS and is asked by others."""
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
