"""A whole rehearsal's stub SDK: what configure probes for is in it, and another one is configured for anew."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from mps_build.common.cmake_summary import parse_configure
from mps_build.common.console import Console
from mps_build.common.errors import GateError
from mps_build.common.receipts import Receipt
from mps_build.common.recipe.catalogue import find_recipe
from mps_build.wheel_build.artifacts import SourceTree
from mps_build.wheel_build.rehearsal.darwin_sdk import DarwinSdk, stub_sources
from mps_build.wheel_build.rehearsal.session import Prepared, Rehearsal
from mps_build.wheel_build.rehearsal.whole.objects import _write_archive
from mps_build.wheel_build.rehearsal.whole.prepare import check_lapack, with_digest_of
from mps_build.wheel_build.rehearsal.whole.toolchain import WholeToolchain, exported_names, write_linker_stubs

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


def _ready() -> Prepared:
    tree = SourceTree(root=Path("/tree"), commit=None, origin="somewhere", submodules={}, epoch=0)
    return Prepared(
        recipe=find_recipe("v2.6.0"),
        tree=tree,
        python=Path("/python"),
        environ={"PATH": "/usr/bin:/bin"},
        tools={},
        digest="environment and source",
        wrap=lambda command: command,
    )


def test_other_stubs_or_compilers_are_configured_for_anew() -> None:
    ready = _ready()

    def digest(stubs: str, compiler: str) -> str:
        receipt = Receipt(step="stub_archives", digest=stubs, facts={}, seconds=0, skipped=True)
        return with_digest_of(ready, stubs=receipt, compiler=compiler).digest

    assert digest("a", "zig 1") == digest("a", "zig 1")
    assert len({digest("a", "zig 1"), digest("b", "zig 1"), digest("a", "zig 2")}) == 3


_WRITES = '#!/bin/sh\nwhile [ $# -gt 0 ]; do case "$1" in -o|rcs) echo made > "$2"; exit ;; esac; shift; done\n'


def test_a_fake_leaves_the_objects_of_the_stub_sdk_as_they_are(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """They are outputs of the step that makes the SDK: changed, it would be run again, and everything linked anew."""
    monkeypatch.setenv("MPS_BUILD_WORK", str(tmp_path / "work"))
    whole = WholeToolchain(
        sdk=DarwinSdk(folder=tmp_path / "sdk"), objc=(), runtime=tmp_path / "runtime.a", llvm=tmp_path / "llvm"
    )
    texts = {whole.sdk.tools / "cc": _WRITES, whole.sdk.tools / "ar": _WRITES}
    texts[whole.llvm / "llvm-cxxfilt"] = '#!/bin/sh\nprintf "%s\\n" "$@"\n'
    for path, text in texts.items():
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
        path.chmod(0o755)
    sources = stub_sources(whole.sdk)
    (whole.sdk.stubs / "lib").mkdir(exist_ok=True)
    before = {source.with_suffix(".o"): f"stub of {source.stem}" for source in sources.values()}
    for path, text in before.items():
        path.write_text(text, encoding="utf-8")
    rehearsal = Rehearsal(find_recipe("v2.6.0"), mode="darwin-wheel", jobs=1, console=Console())

    ready = replace(_ready(), tree=replace(_ready().tree, root=tmp_path))
    (tmp_path / "build").mkdir()
    _write_archive(rehearsal, ready, whole, "onnx", ["_a", "_b"])

    assert (whole.sdk.stubs / "lib" / "libonnx.a").is_file()
    assert {path: path.read_text(encoding="utf-8") for path in before} == before
