"""build_wheel --dry-run: what would be built, on this host or on a recorded one, and nothing is changed."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest
from git_history import repository
from macs import recorded_mac
from mps_build import cli
from mps_build.common.interpreters import PythonSearch


def test_a_recorded_mac_is_named_first_and_judged_as_itself(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("MPS_BUILD_WORK", str(tmp_path / "work"))
    recording = recorded_mac(tmp_path, "m3max-64gb-15.3-all-well")
    answer = tmp_path / "answer.json"

    status = cli.main("build_wheel", ["v2.6.0", "--dry-run", "--host", str(recording), "--json", str(answer)])

    assert status == 0
    assert capsys.readouterr().out.startswith("recorded on 2026-11-01")
    document = json.loads(answer.read_text())
    assert (document["commit"], document["jobs"]) == ("1eba9b3aa3c43f86f4a2c807ac8e12c4a7767340", 16)
    assert not (tmp_path / "work").exists()


def test_a_host_that_cannot_is_said_to_be_recorded_before_it_is_refused(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MPS_BUILD_WORK", str(tmp_path / "work"))
    mac = str(recorded_mac(tmp_path, "imac-intel-vega48-14.4.1"))

    for command, *arguments in (["build_wheel", "v2.6.0", "--dry-run"], ["verify_mps", "torch==2.6.0"]):
        assert cli.main(command, [*arguments, "--host", mac]) != 0
        assert capsys.readouterr().out.startswith("recorded on 2026-11-01")


def test_a_recorded_host_builds_nothing(tmp_path: Path) -> None:
    assert cli.main("build_wheel", ["v2.6.0", "--host", str(recorded_mac(tmp_path, "m3max-64gb-15.3-all-well"))]) == 2


def test_the_python_is_looked_for_before_anything_is_fetched(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("MPS_BUILD_WORK", str(tmp_path / "work"))
    monkeypatch.setenv("MPS_BUILD_CACHE", str(tmp_path / "cache"))
    answer, version = tmp_path / "answer.json", f"{sys.version_info[0]}.{sys.version_info[1]}"

    assert cli.main("build_wheel", ["sample", "--dry-run", "--json", str(answer)]) == 0
    assert json.loads(answer.read_text())["interpreters"][version].startswith("/")

    def none(version: str, *, environ: dict[str, str]) -> PythonSearch:
        skipped = {"/opt/conda/bin/python3": "runs as x86_64: under Rosetta it builds nothing for arm64"}
        return PythonSearch(version=version, found=None, skipped=skipped)

    monkeypatch.setattr("mps_build.wheel_build.planning.search_interpreter", none)
    monkeypatch.setattr("mps_build.commands.doctor.search_interpreter", none)
    assert cli.main("build_wheel", ["sample"]) == 6
    assert "/opt/conda/bin/python3: runs as x86_64" in capsys.readouterr().err
    assert not (tmp_path / "work").exists()
    assert cli.main("doctor", ["sample"]) == 3
    assert "/opt/conda/bin/python3: runs as x86_64" in " ".join(capsys.readouterr().out.split())


_PATCH = """\
--- a/setup.py
+++ b/setup.py
@@ -1 +1 @@
-{before}
+after
"""


@pytest.mark.skipif(sys.platform == "darwin", reason="a Mac is not refused")
@pytest.mark.parametrize(
    ("patch", "status", "said"),
    [
        (_PATCH.format(before="before"), 3, "this host cannot build v2.15.0"),
        (_PATCH.format(before="else"), 5, "hunk 1 of setup.py"),
        (_PATCH.format(before="before").replace("/setup.py", "/../setup.py"), 5, "would reach outside the tree"),
        (_PATCH.format(before="before").replace("/setup.py", "/gone.py"), 5, "lacks a file that it changes"),
    ],
    ids=["fits", "conflicts", "outside", "absent"],
)
def test_recipe_and_patches_are_checked_on_any_system_and_the_host_is_refused_last(
    patch: str,
    status: int,
    said: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.setenv("MPS_BUILD_WORK", str(tmp_path / "work"))
    monkeypatch.setenv("MPS_BUILD_CACHE", str(tmp_path / "cache"))
    commit = repository(tmp_path / "origin", {"setup.py": "before\n"})
    (tmp_path / "own.patch").write_text(patch)
    source = ["--repo", (tmp_path / "origin").as_uri(), "--ref", commit, "--patch", str(tmp_path / "own.patch")]
    answer = tmp_path / "answer.json"

    # v2.15.0 brings no patches of its own.
    assert cli.main("build_wheel", ["v2.15.0", "--dry-run", *source, "--json", str(answer)]) == status

    captured = capsys.readouterr()
    assert said in captured.err
    if status == 3:
        document = json.loads(answer.read_text())
        assert f"they fit {commit[:12]}" in captured.out
        assert (document["patches"], document["patches_tried"]) == (["own.patch"], f"they fit {commit[:12]}")
        assert captured.err.count("fix: a Mac with Apple silicon") == 1
    assert not list((tmp_path / "cache").rglob("*")) and not (tmp_path / "work").exists()
