"""Whole recorded hosts: what stops them and what to beware of, exactly; what proves a Metal compiler."""

from __future__ import annotations

from typing import Any

import pytest
from macs import CLT, MAC, METAL_MISSING, PROVED, XCODE_26, answered, find_recipe, findings_of, host_of, hosts, under
from mps_build.common.errors import UsageError
from mps_build.host.host import observe
from mps_build.host.macos.known_tool_errors import BY_ID, COMMANDS, KNOWN_TOOL_ERRORS
from mps_build.host.macos.xcode import PROOF_MARK
from mps_build.host.probes.probers import RecordedProber
from mps_build.host.probes.recording import recording_of
from mps_build.host.probes.table import METAL_PROOF
from mps_build.host.requirements.findings import Finding
from mps_build.host.requirements.inspect import blockers, inspect, warnings
from mps_build.host.requirements.way import USUAL
from mps_build.host.requirements.xcode import choose_xcode

# What any host is judged by; a recipe adds blockers of its own.
BLOCKERS = (
    "virtual_gpu", "rosetta", "intel_cpu", "macos_too_old_for_wheel", "xcode_clt_only", "xcode_license",
    "xcode_missing", "xcode_too_old", "disk_full",
)  # fmt: skip


WARNINGS = (
    "low_memory", "low_disk", "low_power", "on_battery", "thermal_unknown", "thermal_throttled", "no_gui_session",
    "macos_beta", "compat_version", "gpu_unknown", "virtual_unknown", "xcode_unknown",
)  # fmt: skip


@pytest.mark.parametrize("row", hosts(), ids=lambda row: row["id"])
def test_recorded_host_has_exactly_the_stated_blockers_and_warnings(row: dict[str, Any]) -> None:
    host = observe(RecordedProber(recording_of(row, name=row["id"])))
    findings = inspect(host, find_recipe(row["wheel"]["torch"]))

    expect = dict(row["expect"])
    assert [name for name in blockers(findings) if name in BLOCKERS] == expect.pop("blockers")
    assert warnings(findings) == expect.pop("warnings")
    assert {key: host.document()[key] for key in expect} == expect


@pytest.mark.parametrize("row", hosts(), ids=lambda row: row["id"])
def test_recipes_have_the_floor_that_the_recorded_wheels_have(row: dict[str, Any]) -> None:
    assert find_recipe(row["wheel"]["torch"]).mps_floor == row["wheel"]["macos_floor"]


def test_every_blocker_and_warning_of_a_host_comes_up_with_what_fixes_it() -> None:
    seen: dict[str, Finding] = {}
    given = [(row["probes"], row["wheel"]["torch"]) for row in hosts()]
    given.append(
        (
            [answered("xcode-select", "-p", stderr=f"xcode-select: error: {_phrase('no_active_developer_directory')}")],
            "2.6",
        )
    )
    given.append(([answered("pmset", "-g", "therm", stdout="\tCPU_Speed_Limit \t= 54\n")], "2.6"))
    for probes, torch in given:
        seen |= {name: f for name, f in findings_of(probes, torch).items() if f.level in ("blocker", "warning")}

    for name in (*BLOCKERS, *WARNINGS):
        assert seen[name].level == ("blocker" if name in BLOCKERS else "warning"), name
        assert seen[name].found and seen[name].wanted and seen[name].fix, name


def _phrase(situation: str) -> str:
    return BY_ID[situation].phrases[0]


@pytest.mark.parametrize("situation", [s for s in KNOWN_TOOL_ERRORS if s.phrases], ids=lambda s: s.id)
def test_every_error_situation_has_a_line_with_what_fixes_it(situation: Any) -> None:
    words = " ".join(situation.phrases[:1]) + (" '/Applications/Xcode.app/x dyld: " if situation.needs else "")
    words = f"dyld: {words} /Applications/Xcode.app/" if situation.needs else words
    program = "metal" if situation.id.startswith("metal") else "xcodebuild"
    findings = findings_of([*MAC, answered("xcrun", program, "-version", stderr=f"{words}\n", exit=1)])

    lines = [finding for finding in findings.values() if finding.found == situation.means]
    assert len(lines) == 1
    assert lines[0].level in ("blocker", "note")
    # A fix that names an Xcode, or brings the Command Line Tools alone, cannot work on this Mac without one.
    instead = lines[0].level == "blocker" and any(words in situation.fix for words in (USUAL, COMMANDS["install_clt"]))
    assert (lines[0].fix or "").startswith("install Xcode 26.5") if instead else lines[0].fix == situation.fix
    assert lines[0].link == situation.link


def test_what_is_not_recorded_is_neither_well_nor_ill() -> None:
    findings = inspect(host_of(answered("git", "--version", stdout="git version 2.50.1\n")), find_recipe("v2.15.0"))

    assert blockers(findings) == []
    assert {finding.id for finding in findings if finding.level == "ok"} == {"git"}
    assert warnings(findings) == ["gpu_unknown", "virtual_unknown", "xcode_unknown"]


def test_a_recording_that_answers_no_probe_of_ours_is_no_host() -> None:
    with pytest.raises(UsageError, match="has no answer that this tool reads"):
        host_of()


def test_a_path_or_a_status_never_proves_the_metal_compiler() -> None:
    path = answered("xcrun", "-f", "metal", stdout="/Applications/Xcode_26.5.app/Contents/Developer/usr/bin/metal\n")
    status = answered(
        "xcodebuild", "-showComponent", "MetalToolchain", stdout="Build Version: 17F42\nStatus: installed\n"
    )

    assert findings_of([*MAC, *XCODE_26, path, status])["metal_compiler"].level == "not_recorded"


def test_a_missing_metal_toolchain_stops_only_recipes_that_compile_metal() -> None:
    probes = [*MAC, *XCODE_26, answered("sh", "-c", METAL_PROOF, stderr=METAL_MISSING)]

    assert findings_of(probes, "v2.15.0")["metal_toolchain_missing"].level == "blocker"
    assert (
        findings_of(probes, "v2.15.0")["metal_toolchain_missing"].fix == "xcodebuild -downloadComponent MetalToolchain"
    )
    assert findings_of(probes, "v2.4.1")["metal_toolchain_missing"].level == "note"


def test_a_component_that_needs_an_update_is_not_usable() -> None:
    status = answered("xcodebuild", "-showComponent", "MetalToolchain", stdout="Status: installedUpdateAvailable\n")

    assert findings_of([*MAC, *XCODE_26, status])["metal_toolchain_missing"].level == "blocker"


def test_three_compiled_lines_prove_the_metal_compiler_whatever_else_was_said() -> None:
    status = answered("xcodebuild", "-showComponent", "MetalToolchain", stdout="Status: installedUpdateAvailable\n")
    findings = findings_of([*MAC, *XCODE_26, status, PROVED])

    assert findings["metal_compiler"].level == "ok"
    assert blockers(tuple(findings.values())) == []


def test_metal_4_is_required_of_the_compiler_where_the_wheel_must_hold_it() -> None:
    probes = [
        *MAC,
        *XCODE_26,
        answered(
            "sh",
            "-c",
            METAL_PROOF,
            stdout=f"{PROOF_MARK} metal3.1\n",
            stderr="error: invalid value 'metal4.0' in '-std=metal4.0'\n",
        ),
    ]

    assert findings_of(probes, "v2.15.0")["metal_standard_missing"].level == "blocker"
    assert findings_of(probes, "v2.9.1")["metal_compiler"].level == "ok"


def test_another_xcode_that_suits_is_taken_by_developer_dir_and_nothing_is_switched() -> None:
    old, new = "/Applications/Xcode_15.2.app", "/Applications/Xcode_26.5.app"
    host = host_of(
        *MAC,
        answered("xcode-select", "-p", stdout="/Library/Developer/CommandLineTools\n"),
        answered("xcodebuild", "-version", stderr=CLT, exit=1),
        answered("mdfind", "kMDItemCFBundleIdentifier == 'com.apple.dt.Xcode'", stdout=f"{new}\n{old}\n"),
        under(old, "xcodebuild", "-version", stdout="Xcode 15.2\nBuild version 15C500b\n"),
        under(new, "xcodebuild", "-version", stdout="Xcode 26.5\nBuild version 17F42\n"),
        under(new, "xcrun", "--sdk", "macosx", "--show-sdk-version", stdout="26.5\n"),
        under(new, "sh", "-c", METAL_PROOF, stdout=f"{PROOF_MARK} metal3.1\n{PROOF_MARK} metal4.0\n"),
    )
    recipe = find_recipe("v2.15.0")
    findings = inspect(host, recipe)
    chosen = choose_xcode(host, recipe)

    assert chosen is not None
    assert chosen.developer_dir == f"{new}/Contents/Developer"
    assert chosen.metal_standards == ("3.1", "4.0")
    assert blockers(findings) == []
    assert not any("xcode-select -s" in str(f.fix) for f in findings if f.level in ("blocker", "warning"))
    assert "xcode_beside" in {finding.id for finding in findings}


def test_a_bad_xcode_is_an_error_with_the_reason_and_its_patch_release_is_as_bad() -> None:
    probes = [*MAC, answered("xcodebuild", "-version", stdout="Xcode 26.1.1\nBuild version 17B100\n")]
    finding = findings_of(probes, "v2.15.0")["bad_xcode"]

    assert "cooperative tensor" in finding.found
    assert finding.link == "https://github.com/pytorch/pytorch/issues/194946"


def test_an_old_sdk_is_reported_apart_from_an_old_xcode() -> None:
    probes = [*MAC, *XCODE_26[:2], answered("xcrun", "--sdk", "macosx", "--show-sdk-version", stdout="12.3\n")]

    assert findings_of(probes, "v2.9.1")["sdk_too_old"].found == "12.3"


def test_clang_that_is_dead_stops_the_build_though_xcodebuild_reads_fine() -> None:
    dead = answered("/usr/bin/clang", "--version", stderr=f"{_phrase('xcode_system_resources_outdated')}\n", exit=1)

    assert findings_of([*MAC, *XCODE_26, PROVED, dead])["xcode_system_resources_outdated"].level == "blocker"


def test_an_answer_that_is_not_understood_is_shown_with_its_text() -> None:
    finding = findings_of([*MAC, answered("xcodebuild", "-version", stdout="Xcode of tomorrow\n")])["not_understood"]

    assert "Xcode of tomorrow" in finding.found
    assert "xcodebuild -version" in finding.found


def test_what_a_recipe_could_not_prove_is_reported() -> None:
    recipe = find_recipe("v2.15.0")
    said = [finding.found for finding in inspect(host_of(*MAC), recipe) if finding.id == "unproved"]

    assert recipe.unproved and said == list(recipe.unproved)
