"""The Xcode that was chosen by DEVELOPER_DIR, or that the doctor found, is that of git and of delocate's tools too."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace

import pytest
from macs import recorded_mac
from mps_build.common.environment import SYSTEM_PATH, fetch_environ, repair_environ
from mps_build.common.errors import SourceError
from mps_build.common.git import answer, git
from mps_build.common.recipe.catalogue import find_recipe, recipes_root
from mps_build.common.recipe.embedded_source import materialise
from mps_build.host.host import observe, use_xcode
from mps_build.host.probes.probers import RecordedProber
from mps_build.wheel_build.patches.file import read_patch
from mps_build.wheel_build.patches.trial import scratch

XCODE = "/Applications/Xcode 26.5.app/Contents/Developer"
NONE = (
    "xcode-select: error: unable to get active developer directory, use `sudo xcode-select --switch path/to/Xcode.app`"
)


@pytest.fixture(name="shim", autouse=True)
def _shim(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """git as macOS has it: without a chosen Xcode it is none."""
    tools = tmp_path / "tools"
    tools.mkdir()
    body = f'#!/bin/sh\nif [ -z "$DEVELOPER_DIR" ]; then cat >&2 <<END\n{NONE}\nEND\nexit 1; fi\n'
    (tools / "git").write_text(f'{body}exec {shutil.which("git")} "$@"\n'.replace("`", "\\`"), encoding="utf-8")
    (tools / "git").chmod(0o755)
    monkeypatch.setenv("PATH", f"{tools}:{os.environ['PATH']}")
    monkeypatch.setenv("DEVELOPER_DIR", "")
    monkeypatch.delenv("DEVELOPER_DIR")
    yield


def test_what_the_caller_set_reaches_git_and_the_tools_of_delocate() -> None:
    inherited = {"PATH": "/opt/conda/bin", "DEVELOPER_DIR": XCODE, "CPATH": "/opt/conda/include"}

    assert fetch_environ(inherited)["DEVELOPER_DIR"] == XCODE
    repair = repair_environ(inherited)
    assert repair["DEVELOPER_DIR"] == XCODE
    assert repair["PATH"] == os.pathsep.join([*SYSTEM_PATH, "/opt/conda/bin"])


def test_the_xcode_that_was_found_is_that_of_every_program_we_start(tmp_path: Path) -> None:
    with pytest.raises(SourceError):
        answer(git("--version", environ=fetch_environ(os.environ)))

    use_xcode(SimpleNamespace(developer_dir=XCODE))  # type: ignore[arg-type]

    assert answer(git("--version", environ=fetch_environ(os.environ))).startswith("git version")
    recipe = find_recipe("sample")
    assert materialise(recipes_root() / "sample", tmp_path / "embedded", expected=recipe.commit).commit == recipe.commit
    (tmp_path / "tree").mkdir()
    (tmp_path / "tree" / "a.txt").write_text("one\n", encoding="utf-8")
    text = "Description: a test\n--- a/a.txt\n+++ b/a.txt\n@@ -1 +1 @@\n-one\n+two\n"
    (tmp_path / "a.patch").write_text(text, encoding="utf-8")
    patch = read_patch(tmp_path / "a.patch", bare=True)
    with scratch(tmp_path / "tree", [patch]) as trial:
        assert trial.fits(patch)


def test_a_git_that_is_only_a_shim_leads_to_the_doctor(tmp_path: Path) -> None:
    for ask in (
        lambda: answer(git("--version", environ=fetch_environ(os.environ))),
        lambda: materialise(recipes_root() / "sample", tmp_path / "embedded"),
    ):
        with pytest.raises(SourceError, match="unable to get active developer directory") as error:
            ask()
        assert "nox -s doctor" in str(error.value.hint)


def test_a_recorded_host_names_its_xcode(tmp_path: Path) -> None:
    host = observe(RecordedProber(recorded_mac(tmp_path, "m3max-64gb-15.3-all-well")))

    use_xcode(host)

    assert os.environ["DEVELOPER_DIR"] == host.developer_dir
