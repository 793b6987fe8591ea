"""libomp by hash: the declared file or none."""

from __future__ import annotations

import os
import sys
import zipfile
from pathlib import Path

import pytest
from mps_build.common.errors import BuildEnvironmentError
from mps_build.common.receipts import fingerprint
from mps_build.common.recipe.catalogue import find_recipe
from mps_build.common.recipe.model import Libomp
from mps_build.wheel_build.steps.create_environment import provide_libomp


def _provide(tmp_path: Path, libomp: Libomp, *, offline: bool = True) -> Path:
    return provide_libomp(
        libomp,
        python=Path(sys.executable),
        destination=tmp_path / "libomp",
        cache=tmp_path / "cache",
        environ=dict(os.environ),
        log=tmp_path / "log",
        offline=offline,
    )


def _wheel(tmp_path: Path, *names: str) -> Libomp:
    path = tmp_path / "cache" / "libomp" / "cmeel_libomp-1.0-py3-none-macosx_11_0_arm64.whl"
    path.parent.mkdir(parents=True)
    with zipfile.ZipFile(path, "w") as archive:
        for name in names:
            archive.writestr(f"cmeel.prefix/{name}", name)
    return Libomp(package="cmeel-libomp", version="1.0", sha256=fingerprint(path)["sha256"], minos="11.0")


def test_library_and_header_are_taken_out_and_nothing_else(tmp_path: Path) -> None:
    libomp = _wheel(tmp_path, "lib/libomp.dylib", "lib/libgomp.dylib", "include/omp.h")

    found = sorted(str(path.relative_to(tmp_path / "libomp")) for path in _provide(tmp_path, libomp).rglob("*.*"))

    assert found == ["include/omp.h", "lib/libomp.dylib"]


def test_another_file_than_declared_is_refused_and_not_kept(tmp_path: Path) -> None:
    libomp = _wheel(tmp_path, "lib/libomp.dylib", "include/omp.h").model_copy(update={"sha256": "0" * 64})

    with pytest.raises(BuildEnvironmentError, match="the recipe declares 0000"):
        _provide(tmp_path, libomp)
    assert not list((tmp_path / "cache" / "libomp").iterdir())


def test_a_wheel_without_the_header_is_refused(tmp_path: Path) -> None:
    with pytest.raises(BuildEnvironmentError, match=r"holds no omp\.h"):
        _provide(tmp_path, _wheel(tmp_path, "lib/libomp.dylib"))


@pytest.mark.slow
def test_the_recipes_libomp_is_to_be_had(tmp_path: Path) -> None:
    libomp = find_recipe("2.6").libomp
    assert libomp is not None

    library = _provide(tmp_path, libomp, offline=False) / "lib" / "libomp.dylib"

    assert library.read_bytes()[:4] == b"\xcf\xfa\xed\xfe"
