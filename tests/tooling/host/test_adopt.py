"""What a recording must not hold, and how a user's recording becomes a test."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from macs import specimens
from mps_build.cli import main
from mps_build.common.recipe.catalogue import find_recipe
from mps_build.common.scrubbing.identifiers import Identity
from mps_build.host.adoption import adopt as read_recording
from mps_build.host.adoption import expectation_of, left_over, recording_in
from mps_build.host.probes.probers import scrub

ADOPTED = Path(__file__).parents[2] / "recorded" / "hosts"
TALKATIVE = """\
      Model Identifier: Mac15,9
      Chip: Apple M3 Max
      Serial Number (system): C02XK1ABCD12
      Hardware UUID: 12345678-9ABC-DEF0-1234-56789ABCDEF0
      Provisioning UDID: 00006031-001A2B3C4D5E6F70
      Computer Name: Anna's MacBook
"""
ANNA = Identity(
    words={
        "/Users/anna": ("home folder", "/Users/user"),
        "annasmac": ("host name", "mac.local"),
        "anna": ("user name", "user"),
    }
)


def _recording(stdout: str, *argv: str) -> dict[str, Any]:
    return {"schema": 1, "probes": [{"argv": list(argv or ("x",)), "stdout": stdout, "stderr": "", "exit": 0}]}


def _adopt(tmp_path: Path, document: Any, *arguments: str) -> tuple[int, dict[str, Any]]:
    file, result = tmp_path / "mac.json", tmp_path / "result.json"
    file.write_text(json.dumps(document))
    code = main("adopt", [str(file), "--into", str(tmp_path / "hosts"), "--json", str(result), *arguments])
    return code, json.loads(result.read_text())


def test_scrubbing_takes_out_who_and_which_and_leaves_what() -> None:
    document, removed = scrub(_recording(TALKATIVE), ANNA)
    text = document["probes"][0]["stdout"]

    assert "Model Identifier: Mac15,9" in text and "Chip: Apple M3 Max" in text
    for secret in ("C02XK1ABCD12", "12345678", "001A2B3C4D5E6F70", "Anna"):
        assert secret not in text, secret
    assert removed["serial number"] == removed["UUID"] == removed["UDID"] == 1
    assert left_over(document) == ()


@pytest.mark.parametrize(
    ("said", "left"),
    [
        ("/Users/anna/Library/x", "/Users/user/Library/x"),
        ("hello anna.", "hello user."),
        ("savanna and annasmac2", "savanna and annasmac2"),
        ("Darwin annasmac 24.3.0 Darwin Kernel", "Darwin mac.local 24.3.0 Darwin Kernel"),
        ("Darwin other-name.corp 24.3.0 Darwin Kernel", "Darwin mac.local 24.3.0 Darwin Kernel"),
        ("/Users/somebody/x", "/Users/user/x"),
        ('"IOPlatformSerialNumber" = "C02XK1ABCD12"', '"IOPlatformSerialNumber" = "XXXXXXXXXX"'),
        ('"serial_number" : "C02XK1ABCD12"', '"serial_number" : "XXXXXXXXXX"'),
        (
            "<key>serial_number</key>\n\t<string>C02XK</string>",
            "<key>serial_number</key>\n\t<string>XXXXXXXXXX</string>",
        ),
        ("Display Serial Number: 0x1234ABCD", "Display Serial Number: XXXXXXXXXX"),
        ("ether a4:83:e7:01:02:03", "ether 00:00:00:00:00:00"),
        ("mail anna.b@corp.example", "mail user@example.org"),
        ("//anna@nas.corp/Team  1Ti 2Gi 3Gi", "//user@server/share  1Ti 2Gi 3Gi"),
        ("nas.corp:/export/team   1000 20 30", "server:/share   1000 20 30"),
        ("SSID: Home Sweet Home", "SSID: removed"),
        ("version: 16.2.0.0.1.1733547573", "version: 16.2.0.0.1.1733547573"),
        ("Xcode 26.5\nBuild version 17F42", "Xcode 26.5\nBuild version 17F42"),
    ],
)
def test_scrubbing_by_kind(said: str, left: str) -> None:
    document, _ = scrub(_recording(said), ANNA)

    assert document["probes"][0]["stdout"] == left
    assert left_over(document) == ()


def test_scrubbing_changes_no_fact() -> None:
    for row in specimens("hosts"):
        before = read_recording({"probes": row["probes"]}, name="x")
        after = read_recording(scrub({"probes": row["probes"]}, ANNA)[0], name="x")

        assert [observation.facts for observation in after.host.observations] == [
            observation.facts for observation in before.host.observations
        ]


def test_a_serial_number_left_in_is_refused_and_its_line_shown(tmp_path: Path) -> None:
    code, document = _adopt(tmp_path, _recording(TALKATIVE, "system_profiler", "SPHardwareDataType"))

    assert code == 2
    assert "Serial Number (system): C02XK1ABCD12" in document["error"]
    assert "system_profiler SPHardwareDataType" in document["error"]
    assert not (tmp_path / "hosts").exists()


def test_a_clean_recording_is_filed_with_what_is_to_be_confirmed(tmp_path: Path) -> None:
    row = next(row for row in specimens("hosts") if row["id"].startswith("m3max"))
    clean, _ = scrub({"schema": 1, "probes": [*row["probes"], {"argv": ["sw_vers", "--new"], "stdout": "?!"}]}, ANNA)
    code, document = _adopt(tmp_path, clean, "--recipe", "v2.9.1")
    expectation = json.loads(Path(document["expectation"]).read_text())

    assert code == 0
    assert Path(document["recording"]).name == "m3-max-macos-15.3-xcode-16.2.json"
    assert expectation["confirmed"] is False
    assert expectation["blockers"] == []
    assert expectation["not_understood"] == [["sw_vers", "--new"]]
    assert _adopt(tmp_path, clean, "--recipe", "v2.9.1")[0] == 2  # never over a file that is there


def test_a_record_gives_the_recording_it_holds() -> None:
    inner = _recording("x")

    assert recording_in({"schema": "mps-build/record/1", "host_recording": inner}, name="x") == inner


@pytest.mark.parametrize("name", ["../x", ".hidden", ""])
def test_a_name_that_leads_elsewhere_is_refused(tmp_path: Path, name: str) -> None:
    assert _adopt(tmp_path, _recording("x"), "--name", name)[0] == 2


def _faults_in(folder: Path) -> list[str]:
    faults = []
    for path in sorted(folder.glob("*.expect.json")):
        document = json.loads(path.with_name(path.name.replace(".expect.json", ".json")).read_text())
        expected = json.loads(path.read_text())
        made = expectation_of(read_recording(document, name=path.name), find_recipe(expected["recipe"]))
        faults += [f"{path.name}: not scrubbed: {found.line}" for found in left_over(document)]
        if expected.get("confirmed") is not True:
            faults.append(f"{path.name}: read it; if it is right, set `confirmed` to true")
        if made | {"confirmed": True} != expected | {"confirmed": True}:
            faults.append(f"{path.name}: is read as {made}")
    return faults


def test_adopted_hosts_are_scrubbed_confirmed_and_judged_as_confirmed() -> None:
    assert _faults_in(ADOPTED) == []


def test_an_adopted_host_fails_the_tests_until_it_is_confirmed_and_whenever_it_is_read_otherwise(
    tmp_path: Path,
) -> None:
    _, document = _adopt(tmp_path, _recording("Xcode 26.5\nBuild version 17F42\n", "xcodebuild", "-version"))
    path = Path(document["expectation"])
    assert len(_faults_in(path.parent)) == 1
    path.write_text(json.dumps(json.loads(path.read_text()) | {"confirmed": True}))
    assert _faults_in(path.parent) == []

    path.write_text(json.dumps(json.loads(path.read_text()) | {"chip": "Apple M9"}))

    assert len(_faults_in(path.parent)) == 1
