"""What our header patches fix, shown by a compiler: the stock header fails, the patched one compiles.

Apple's clang and libc++ are not to be had here; LLVM's newer ones, which zig carries, refuse the same lines
for macOS arm64. The headers are those of the official wheel, fetched from the index.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest
from mps_build.common.recipe.catalogue import find_recipe, patches_root
from mps_build.wheel_build.patches.apply import apply_patches

pytestmark = [pytest.mark.slow, pytest.mark.zig]
SORTS_A_LIST = """\
#include <ATen/core/List.h>
#include <algorithm>
void sort(c10::List<int64_t>& list) { std::sort(list.begin(), list.end()); }
"""
LIBNOP_IN_SMALL = """\
struct Value { template <typename... A> int Construct(A&&...) { return 1; } };
template <typename T> int make(T& value) { return value.template Construct(1); }
int use() { Value value; return make(value); }
"""


@pytest.fixture(scope="module")
def headers(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """torch/include of the official 1.13.1, placed below the names that patches use."""
    root = tmp_path_factory.mktemp("wheel")
    options = ["--only-binary=:all:", "--platform", "macosx_11_0_arm64", "--python-version", "310"]
    pip = [sys.executable, "-m", "pip", "download", "-q", "--no-deps", *options, "-d", str(root), "torch==1.13.1"]
    subprocess.run(pip, check=True)
    with zipfile.ZipFile(next(root.glob("*.whl"))) as wheel:
        wheel.extractall(root, [name for name in wheel.namelist() if name.startswith("torch/include/")])
    return root / "torch/include"


def _errors(source: str, folder: Path, *includes: Path, flags: tuple[str, ...] = ()) -> str:
    (folder / "try.cpp").write_text(source)
    zig = [sys.executable, "-m", "ziglang", "c++", "-target", "aarch64-macos.11.0", "-std=c++14", "-w", *flags]
    zig += ["-c", str(folder / "try.cpp"), "-o", str(folder / "try.o")]
    zig += [part for include in includes for part in ("-I", str(include))]
    environ = {**os.environ, "ZIG_LOCAL_CACHE_DIR": str(folder / "zig")}
    done = subprocess.run(zig, capture_output=True, text=True, env=environ, check=False, timeout=600)
    return "\n".join(line for line in done.stderr.splitlines() if "error:" in line)


def test_the_headers_of_1_13_compile_only_when_patched(headers: Path, tmp_path: Path) -> None:
    files = {"aten/src/ATen/core/List.h": "ATen/core/List.h", "c10/util/strong_type.h": "c10/util/strong_type.h"}
    patches = [name for name in find_recipe("1.13").patches if name.startswith(("list-element", "strong-type"))]
    assert len(patches) == 2
    for in_tree, installed in files.items():
        (tmp_path / "tree" / in_tree).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy2(headers / installed, tmp_path / "tree" / in_tree)
    apply_patches(tmp_path / "tree", patches, patches_root=patches_root())
    fixed = (tmp_path / "tree/aten/src", tmp_path / "tree")

    stock = _errors(SORTS_A_LIST, tmp_path, headers)
    patched = _errors(SORTS_A_LIST, tmp_path, *fixed, headers)

    assert "calling a private constructor of class 'c10::impl::ListElementReference<" in stock
    assert "'is_arithmetic' cannot be specialized" in stock
    assert patched == ""


def test_the_switch_for_libnop_is_the_one_that_clang_asks_for(tmp_path: Path) -> None:
    patch = (patches_root() / "tensorpipe-libnop-clang17.patch").read_text()
    switch = "-Wno-missing-template-arg-list-after-template-kw"
    assert f"target_compile_options(tensorpipe PRIVATE {switch})" in patch

    assert "a template argument list is expected" in _errors(LIBNOP_IN_SMALL, tmp_path)
    assert _errors(LIBNOP_IN_SMALL, tmp_path, flags=(switch,)) == ""
