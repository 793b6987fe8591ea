"""A whole rehearsal's stub SDK: what configure probes for is in it, and another one is configured for anew."""

from __future__ import annotations

from pathlib import Path

import pytest
from mps_build.build.artifacts import SourceTree
from mps_build.build.rehearsal.session import Prepared
from mps_build.build.rehearsal.whole.library_names import exported_names
from mps_build.build.rehearsal.whole.prepare import asking, check_lapack
from mps_build.build.rehearsal.whole.system_stubs import write_linker_stubs
from mps_build.common.cmake_summary import parse_configure
from mps_build.common.errors import GateError
from mps_build.common.receipts import Receipt
from mps_build.common.recipe.catalogue import find_recipe

_SUMMARY = "-- USE_LAPACK            : {}\n-- USE_MPS               : ON\n"


@pytest.mark.parametrize("release", ["1.13.1", "2.6.0", "2.15.0"])
def test_accelerate_has_what_configure_probes_for_and_metal_nothing_more(tmp_path: Path, release: str) -> None:
    stubs = write_linker_stubs(tmp_path, release=release, more={"libSystem.B": ["_one_more"]})

    def names(path: str) -> frozenset[str]:
        return exported_names((tmp_path / path).read_text(encoding="utf-8"))

    # cmake/Modules/FindLAPACK.cmake asks for cheev, FindBLAS.cmake for sgemm; torch itself calls no cheev.
    accelerate = names("System/Library/Frameworks/Accelerate.framework/Accelerate.tbd")
    assert {"_cheev_", "_sgemm_", "_cblas_sdot", "_ssyevd_"} <= accelerate
    assert "_cheev_" not in names("System/Library/Frameworks/Metal.framework/Metal.tbd")
    assert "_one_more" in exported_names((stubs.libraries / "libSystem.tbd").read_text(encoding="utf-8"))


@pytest.mark.parametrize(("said", "found"), [("1", True), ("ON", True), ("0", False), ("", False)])
def test_the_summary_says_whether_lapack_is_on(said: str, found: bool) -> None:
    assert parse_configure(_SUMMARY.format(said)).lapack is found


@pytest.mark.parametrize("found", [False, None])
def test_a_whole_rehearsal_without_lapack_stops_after_configure(found: bool | None) -> None:
    check_lapack({"lapack": True})
    with pytest.raises(GateError, match="no LAPACK"):
        check_lapack({"lapack": found})


def test_other_stubs_or_compilers_are_configured_for_anew() -> None:
    tree = SourceTree(root=Path("/tree"), commit=None, origin="somewhere", submodules={}, epoch=0)
    ready = Prepared(
        recipe=find_recipe("v2.6.0"),
        tree=tree,
        python=Path("/python"),
        environ={},
        tools={},
        digest="environment and source",
        wrap=lambda command: command,
    )

    def digest(stubs: str, compiler: str) -> str:
        receipt = Receipt(step="stub_archives", digest=stubs, facts={}, seconds=0, skipped=True)
        return asking(ready, stubs=receipt, compiler=compiler).digest

    assert digest("a", "zig 1") == digest("a", "zig 1")
    assert len({digest("a", "zig 1"), digest("b", "zig 1"), digest("a", "zig 2")}) == 3
