"""What a tree or a wheel says of itself: flags, generated headers, and what is refused."""

from __future__ import annotations

from pathlib import Path

import pytest
from mps_build.common.errors import SourceError
from mps_build.wheel_build.mm.tree import configured, find_tree, read_tree, read_wheel_headers


def test_a_tree_says_its_own_flags(tmp_path: Path) -> None:
    tree = read_tree(_tree(tmp_path))
    assert tree.standard == "20" and tree.release == "2.9.0"
    assert tree.flags == ("-DUSE_MPS", "-fno-objc-arc")
    assert find_tree(tmp_path / "aten/src/ATen/mps/New.mm") == tmp_path.resolve()
    assert find_tree(Path("/nowhere/New.mm")) is None


def test_what_cmake_would_configure_is_written_with_all_off(tmp_path: Path) -> None:
    folder = _tree(tmp_path) / "c10/macros"
    folder.mkdir(parents=True)
    (folder / "cmake_macros.h.in").write_text('#cmakedefine C10_USE_GLOG\n#define A @A@\n#define S "${S}"\n')
    assert dict(configured(tmp_path)) == {
        "c10/macros/cmake_macros.h": '/* #undef C10_USE_GLOG */\n#define A 0\n#define S ""\n'
    }


def _tree(root: Path) -> Path:
    for folder in ("aten/src/ATen/mps", "aten/src/ATen/native/mps"):
        (root / folder).mkdir(parents=True)
    (root / "aten/src/ATen/native/native_functions.yaml").write_text("[]\n")
    (root / "version.txt").write_text("2.9.0a0\n")
    (root / "CMakeLists.txt").write_text(
        'set(CMAKE_CXX_STANDARD 20 CACHE STRING "")\n'
        'string(APPEND CMAKE_OBJCXX_FLAGS " -DUSE_MPS -fno-objc-arc -Wno-unguarded-availability-new")\n'
    )
    return root


def test_no_tree_and_a_tree_without_mps_are_distinguished(tmp_path: Path) -> None:
    with pytest.raises(SourceError, match="is not a PyTorch tree"):
        read_tree(tmp_path)
    (_tree(tmp_path) / "aten/src/ATen/mps").rmdir()
    with pytest.raises(SourceError, match="PyTorch without MPS: aten/src/ATen/mps is missing"):
        read_tree(tmp_path)


def test_another_wheel_is_refused(tmp_path: Path) -> None:
    with pytest.raises(SourceError, match="is not a wheel of torch"):
        read_wheel_headers(tmp_path / "numpy-2.0.0-cp312-cp312-macosx_14_0_arm64.whl", tmp_path)
    broken = tmp_path / "torch-2.6.0-cp312-none-macosx_11_0_arm64.whl"
    broken.write_bytes(b"PK")
    with pytest.raises(SourceError, match="cannot be read"):
        read_wheel_headers(broken, tmp_path)
