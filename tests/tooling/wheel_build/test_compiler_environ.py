"""The build's environment is given whole: nothing of the caller's gets in but what is named."""

from __future__ import annotations

from pathlib import Path

import pytest
from mps_build.common.environment import Toolchain, fetch_environ
from mps_build.common.errors import UsageError
from mps_build.common.recipe.catalogue import find_recipe
from mps_build.wheel_build.compiler_environ import build_environ, check_path, parse_settings

INHERITED = {
    "PATH": "/opt/homebrew/bin:/usr/bin",
    "HOME": "/Users/a",
    "CPATH": "/opt/homebrew/include",
    "CONDA_PREFIX": "/opt/conda",
    "USE_MPS": "0",
    "LS_COLORS": "a;b",
    "PIP_INDEX_URL": "https://example.org/simple",
    "https_proxy": "http://proxy",
    "CCACHE_DIR": "/cache",
    "DISTUTILS_DEBUG": "1",
}


def _environ(**changes: object) -> dict[str, str]:
    arguments = {
        "inherited": INHERITED,
        "venv": Path("/venv"),
        "toolchain": Toolchain(name="xcode", variables={"CC": "/usr/bin/clang"}),
        "jobs": 3,
        "epoch": 7,
        "settings": {},
        "extra": {},
    } | changes
    return build_environ(find_recipe("2.13"), **arguments)[0]  # type: ignore[arg-type]


def test_compilers_see_the_recipe_and_nothing_that_leaks() -> None:
    environ = _environ()

    assert environ["USE_MPS"] == "1"
    assert environ["PATH"] == "/venv/bin:/usr/bin:/bin:/usr/sbin:/sbin"
    assert environ["CC"] == "/usr/bin/clang"
    assert not {"CPATH", "CONDA_PREFIX", "PIP_INDEX_URL", "https_proxy", "LS_COLORS", "DISTUTILS_DEBUG"} & set(environ)


def test_no_value_of_2_13_holds_a_semicolon() -> None:
    assert not [name for name, value in _environ().items() if ";" in value]


def test_pip_and_git_get_the_way_out_and_not_the_compilers_variables() -> None:
    environ = fetch_environ(INHERITED)

    assert {"PIP_INDEX_URL", "https_proxy", "HOME", "PATH"} <= set(environ)
    assert not {"USE_MPS", "CPATH", "CONDA_PREFIX"} & set(environ)


def test_a_setting_wins_over_the_recipe() -> None:
    assert _environ(settings=parse_settings(["USE_MPS=0"]))["USE_MPS"] == "0"


@pytest.mark.parametrize("text", ["USE_MPS", "=1", "A=b;c", "A=b\nc", "1A=b"])
def test_a_setting_that_cannot_be_is_refused(text: str) -> None:
    with pytest.raises(UsageError, match="--set"):
        parse_settings([text])


def test_a_setting_may_hold_blanks_and_letters_of_any_language() -> None:
    assert parse_settings(["CFLAGS=-DA=1 -I/Users/ä b"]) == {"CFLAGS": "-DA=1 -I/Users/ä b"}


@pytest.mark.parametrize("name", ["a;b", "a:b", "a\nb"])
def test_a_work_folder_that_cmake_would_tear_apart_is_refused(name: str) -> None:
    with pytest.raises(UsageError, match="split"):
        check_path(Path("/tmp") / name, what="the work folder")


def test_a_work_folder_with_blanks_and_umlauts_is_fine() -> None:
    check_path(Path("/tmp/mit Leerzeichen/größe"), what="the work folder")
