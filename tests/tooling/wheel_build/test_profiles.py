"""What a profile changes, and what it must never change."""

from __future__ import annotations

import re
from pathlib import Path

from mps_build.common.recipe.catalogue import all_recipes, find_recipe
from mps_build.wheel_build.profiles import profile_lines, profile_settings
from mps_build.wheel_build.wide_headers import TORCH_CPU


def test_a_release_build_sets_nothing_and_its_headers_instantiate_nothing(tmp_path: Path) -> None:
    for recipe in all_recipes():
        assert profile_settings("release", recipe) == {}
    lines = profile_lines("release", tmp_path, cached=False)

    assert "set(CMAKE_PCH_INSTANTIATE_TEMPLATES OFF" in lines
    assert "set(CMAKE_PCH_INSTANTIATE_TEMPLATES ON" in profile_lines("develop", tmp_path, cached=False)


def test_a_release_build_behind_a_cache_has_no_precompiled_header(tmp_path: Path) -> None:
    assert profile_lines("release", tmp_path, cached=True) == ""
    assert list(tmp_path.iterdir()) == []


def test_develop_leaves_out_what_nobody_waits_for_but_never_mps_or_the_level_of_optimisation() -> None:
    settings = profile_settings("develop", find_recipe("v2.6.0"))

    assert settings["USE_DISTRIBUTED"] == settings["BUILD_TEST"] == "0"
    assert "USE_MPS" not in settings
    assert not any("FLAGS" in name or "BUILD_TYPE" in name for name in settings)


def test_a_precompiled_header_is_never_shared_between_checkouts() -> None:
    for name in ("v2.6.0", "sample"):
        settings = profile_settings("develop", find_recipe(name))

        assert settings["CCACHE_BASEDIR"] == "", "set and empty: it beats the caller's and the configuration file's"


def test_the_sample_is_no_torch_and_loses_no_part() -> None:
    assert "USE_DISTRIBUTED" not in profile_settings("develop", find_recipe("sample"))


def test_develops_headers_lie_in_the_builds_own_folder(tmp_path: Path) -> None:
    text = profile_lines("develop", tmp_path, cached=True)

    assert {path.name for path in tmp_path.iterdir()} == {"torch_cpu.h", "torch_python.h"}
    for target in ("torch_cpu", "torch_python"):
        assert f"CALL mps_build_wide_header {target} [==[{tmp_path / (target + '.h')}]==]" in text


def test_kernels_compiled_once_per_cpu_capability_keep_their_own_flags_and_get_no_header() -> None:
    pattern = "|".join(TORCH_CPU.excluded)

    for name in ("SumKernel.cpp.DEFAULT.cpp", "SumKernel.cpp.AVX512.cpp"):
        assert re.search(pattern, f"/build/aten/src/ATen/native/cpu/{name}")
    assert not re.search(pattern, "/source/aten/src/ATen/native/Dropout.cpp")
