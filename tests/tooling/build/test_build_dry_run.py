"""build_wheel --dry-run: what would be built, on this host or on a recorded one, and nothing is changed."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from mps_build import cli
from recorded_macs import recorded_mac


def test_a_recorded_mac_is_told_first_and_judged_as_itself(
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

    for verb, *arguments in (["build_wheel", "v2.6.0", "--dry-run"], ["verify_mps", "torch==2.6.0"]):
        assert cli.main(verb, [*arguments, "--host", mac]) != 0
        assert capsys.readouterr().out.startswith("recorded on 2026-11-01")


def test_a_recorded_host_builds_nothing(tmp_path: Path) -> None:
    assert cli.main("build_wheel", ["v2.6.0", "--host", str(recorded_mac(tmp_path, "m3max-64gb-15.3-all-well"))]) == 2
