"""`nox -s doctor`: a host, live or recorded, against a recipe; bad recordings end in one clear sentence."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from macs import specimens
from mps_build.cli import main
from mps_build.host.macos.known_tool_errors import KNOWN_TOOL_ERRORS
from mps_build.host.probes.table import PROBES

ONE_ANSWER = {"probes": [{"argv": ["sw_vers", "-productVersion"], "stdout": "15.6.1\n", "stderr": "", "exit": 0}]}
HOSTS = {row["id"]: row for row in specimens("hosts")}


def _doctor(tmp_path: Path, *arguments: str) -> tuple[int, dict[str, Any]]:
    result = tmp_path / "result.json"
    code = main("doctor", [*arguments, "--json", str(result)])
    return code, json.loads(result.read_text())


def _file(tmp_path: Path, document: Any, name: str = "mac.json") -> Path:
    path = tmp_path / name
    path.write_text(document if isinstance(document, str) else json.dumps(document))
    return path


@pytest.mark.parametrize(
    ("host", "recipe", "code"),
    [
        ("m3max-64gb-15.3-all-well", "2.9.1", 0),
        ("m2pro-15.3-license-not-agreed", "v2.9", 3),
        ("rosetta-python-only-m2-26.1", "2.15.0", 3),
    ],
)
def test_a_recorded_host_replays_to_the_same_end_anywhere(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], host: str, recipe: str, code: int
) -> None:
    recording = _file(tmp_path, {"recorded_on": "2026-11-02", **HOSTS[host]})
    ended, document = _doctor(tmp_path, recipe, "--host", str(recording))

    expect = HOSTS[host]["expect"]
    assert ended == code == document["exit_code"]
    assert capsys.readouterr().out.splitlines()[0] == "recorded on 2026-11-02"
    assert set(expect["blockers"]) <= set(document["blockers"])
    assert document["warnings"] == expect["warnings"]
    assert [probe["argv"] for probe in document["probes"]] == [probe["argv"] for probe in HOSTS[host]["probes"]]
    assert all(isinstance(probe["fact"], dict) for probe in document["probes"])
    assert {
        key: document["host"][key] for key in ("macos", "chip", "virtual", "rosetta", "gpu_cores", "memory_gb")
    } == {key: expect[key] for key in ("macos", "chip", "virtual", "rosetta", "gpu_cores", "memory_gb")}
    assert {"id", "level", "what", "found", "wanted", "fix", "link"} <= document["findings"][0].keys()


def test_every_reason_is_reported_at_once_with_the_command_that_fixes_it(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    recording = _file(tmp_path, HOSTS["vmware-10.15.4-says-macbookpro15"])
    code, document = _doctor(tmp_path, "2.9.1", "--host", str(recording))
    said = " ".join(capsys.readouterr().out.split())

    assert code == 3
    assert document["cause"] == "host"
    for finding in document["findings"]:
        if finding["level"] == "blocker":
            assert finding["id"] in said
            assert " ".join(finding["fix"].split()) in said


def test_the_variables_of_a_recorded_probe_count(tmp_path: Path) -> None:
    path = "/opt/tools/none"
    probe = {
        "argv": ["xcode-select", "-p"],
        "env": {"DEVELOPER_DIR": path},
        "stdout": f"{path}\n",
        "stderr": "",
        "exit": 0,
    }
    _, document = _doctor(tmp_path, "--host", str(_file(tmp_path, {"probes": [probe]})))

    assert document["probes"] == [
        {"argv": ["xcode-select", "-p"], "fact": {"developer_dir": path, "kind": "other", "from_env": True}}
    ]


def test_a_live_host_that_is_recorded_replays_with_the_same_findings(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    recording = tmp_path / "here.json"
    live_code, live = _doctor(tmp_path, "v2.9.1", "--record", str(recording))
    assert "taken out" in capsys.readouterr().out
    replayed_code, replayed = _doctor(tmp_path, "v2.9.1", "--host", str(recording))

    assert replayed_code == live_code
    for key in ("findings", "blockers", "warnings"):
        assert replayed[key] == live[key], key
    assert json.loads(recording.read_text())["schema"] == 1


def test_without_a_recipe_the_newest_release_is_meant(tmp_path: Path) -> None:
    recording = _file(tmp_path, ONE_ANSWER)

    assert _doctor(tmp_path, "--host", str(recording))[1]["recipe"].startswith("v2.")


def test_another_patch_release_is_judged_by_the_recipe_of_its_minor(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    recording = _file(tmp_path, ONE_ANSWER)

    assert _doctor(tmp_path, "2.7.0", "--host", str(recording))[1]["recipe"] == "v2.7.1"
    assert "no recipe for 2.7.0" in capsys.readouterr().out


def test_all_recipes_are_shown_with_the_xcode_that_builds_them(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    recording = _file(tmp_path, HOSTS["m4-mini-26.4-noise-on-stderr"])
    code, document = _doctor(tmp_path, "--all", "--host", str(recording))
    rows = {row["recipe"]: row for row in document["recipes"]}

    assert code == 0
    assert rows["v2.9.1"]["builds"] is True
    assert rows["v2.9.1"]["developer_dir"] == "/Applications/Xcode_26.5.app/Contents/Developer"
    assert "v2.9.1" in capsys.readouterr().out


def test_on_linux_it_says_what_can_be_done_here(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    probe = {"argv": ["uname", "-a"], "stdout": "Linux box 6.1.0 #1 SMP x86_64 GNU/Linux\n", "stderr": "", "exit": 0}
    code, _ = _doctor(tmp_path, "v2.9.1", "--host", str(_file(tmp_path, {"probes": [probe]})))
    said = capsys.readouterr().out

    assert code == 3
    for session in ("audit_wheel", "triage", "rehearse", "build_wheel -- sample", "verify_mps"):
        assert f"nox -s {session}" in said, session


PROBE = {"argv": ["sw_vers"], "stdout": "", "stderr": "", "exit": 0}


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"no json", "mac.json:1: is not JSON"),
        (b'{"probes": [\n}', "mac.json:2: is not JSON"),
        (b"[" * 100_000, "is not JSON"),
        (b"[]", "is not a recording"),
        (b'{"probes": 3}', "probes"),
        (b'{"probes": [{"stdout": ""}]}', "probes.0.argv"),
        (b'{"schema": 2, "probes": []}', "has schema 2, and this mps-build reads up to 1"),
        (b'{"schema": "x", "probes": []}', "schema"),
        (json.dumps({"probes": [PROBE, PROBE]}).encode(), "holds a probe two times: sw_vers"),
        (b'{"probes": [{"argv": ["a"], "stdout": "\n\xff"}]}', "mac.json:2: is not UTF-8: byte 0xff"),
        (b"", "is not JSON"),
        (b'{"probes": []}', "has no answer that this tool reads"),
        (b'{"probes": [{"argv": ["frobnicate"], "stdout": "x"}]}', "has no answer that this tool reads"),
    ],
)
def test_a_bad_recording_ends_in_one_clear_sentence(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], content: bytes, message: str
) -> None:
    path = tmp_path / "mac.json"
    path.write_bytes(content)
    code, document = _doctor(tmp_path, "--host", str(path))

    assert code == 2
    assert message in document["error"]
    assert "Traceback" not in capsys.readouterr().err


def test_a_recording_of_100_mb_is_refused_unread(tmp_path: Path) -> None:
    path = tmp_path / "mac.json"
    with path.open("wb") as file:
        file.truncate(100_000_000)
    code, document = _doctor(tmp_path, "--host", str(path))

    assert code == 2
    assert "is 100 MB long" in document["error"]


@pytest.mark.parametrize(
    "arguments",
    [
        ["--host", "nowhere.json"],
        ["v9.9.9"],
        ["--all", "v2.9.1"],
        ["--host", "a.json", "--record", "b.json"],
        ["--record", "no/such/folder/mac.json"],
    ],
)
def test_a_wrong_call_is_reported_so(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, arguments: list[str]) -> None:
    monkeypatch.chdir(tmp_path)
    code, document = _doctor(tmp_path, *arguments)

    assert code == 2
    assert document["error"]


def test_the_page_on_recorded_macs_lists_every_probe_and_what_it_may_reveal() -> None:
    page = (Path(__file__).parents[3] / "docs" / "host" / "recorded_macs.md").read_text()

    for probe in PROBES:
        requested = "each time" if probe.standard else "recording only"
        assert f"| {probe.why} | {probe.reveals} | {probe.seconds:.0f} s | {requested} |" in page, probe.name
        assert f"| {probe.name} |" in page, probe.name


def test_the_page_on_recorded_macs_lists_every_situation_and_what_fixes_it() -> None:
    page = (Path(__file__).parents[3] / "docs" / "host" / "recorded_macs.md").read_text()

    for situation in KNOWN_TOOL_ERRORS:
        assert f"| `{situation.id}` |" in page, situation.id
        assert (situation.fix or "nothing to fix").replace("<", "&lt;") in page, situation.id
