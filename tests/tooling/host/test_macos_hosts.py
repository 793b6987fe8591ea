"""Whole recorded hosts: what stops them and what to beware of, exactly; and what each Xcode on them is good for."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from typing import Any

import pytest
from mps_build.build.steps.check_host import check_host
from mps_build.common.errors import HostError, UsageError
from mps_build.common.recipe import catalogue as recipe_files
from mps_build.host.host import Host, observe
from mps_build.host.macos.known_tool_errors import BY_ID, COMMANDS, KNOWN_TOOL_ERRORS
from mps_build.host.macos.metal import PROOF_MARK
from mps_build.host.macos.parsers import parse_probe
from mps_build.host.macos.versions import is_beta_build
from mps_build.host.probes.probers import RecordedProber
from mps_build.host.probes.table import METAL_PROOF, PROBES, probes_for
from mps_build.host.recordings.recording import RecordedProbe, Recording, recording_of
from mps_build.host.requirements.buildability import buildability_of, unlocked_by
from mps_build.host.requirements.findings import Finding
from mps_build.host.requirements.inspect import blockers, inspect, warnings
from mps_build.host.requirements.way import USUAL
from mps_build.host.requirements.xcode import choose_xcode
from mps_build.host.toolchain import xcode_toolchain
from specimen_judge import specimens

HOSTS = specimens("hosts")
# What any host is judged by; a recipe adds blockers of its own.
BLOCKERS = (
    "virtual_gpu", "rosetta", "intel_cpu", "macos_too_old_for_wheel", "xcode_clt_only", "xcode_license",
    "xcode_missing", "xcode_too_old", "disk_full",
)  # fmt: skip
WARNINGS = (
    "low_memory", "low_disk", "low_power", "on_battery", "thermal_unknown", "thermal_throttled", "no_gui_session",
    "macos_beta", "compat_version", "gpu_unknown", "virtual_unknown", "xcode_unknown",
)  # fmt: skip

Probe = dict[str, Any]
find_recipe = cache(recipe_files.find_recipe)
all_recipes = cache(recipe_files.all_recipes)
CLT = (
    "xcode-select: error: tool 'xcodebuild' requires Xcode, but active developer directory "
    "'/Library/Developer/CommandLineTools' is a command line tools instance\n"
)
METAL_MISSING = (
    "error: cannot execute tool 'metal' due to missing Metal Toolchain; "
    "use: xcodebuild -downloadComponent MetalToolchain\n"
)


def _probe(*argv: str, stdout: str = "", stderr: str = "", exit: int | None = 0) -> Probe:
    return {"argv": list(argv), "stdout": stdout, "stderr": stderr, "exit": exit}


def _under(path: str, *argv: str, **answer: Any) -> Probe:
    return _probe("env", f"DEVELOPER_DIR={path}/Contents/Developer", *argv, **answer)


MAC = (
    _probe("sw_vers", stdout="ProductName:\t\tmacOS\nProductVersion:\t\t26.4\nBuildVersion:\t\t25E246\n"),
    _probe(
        "uname",
        "-a",
        stdout="Darwin mac.local 25.4.0 Darwin Kernel Version 25.4.0: Thu Mar 19 19:28:14 PDT 2026; "
        "root:xnu-12377.101.15~1/RELEASE_ARM64_T8132 arm64\n",
    ),
    _probe(
        "sysctl",
        "hw.memsize",
        "hw.cputype",
        "hw.physicalcpu",
        "machdep.cpu.brand_string",
        stdout="hw.memsize: 25769803776\nhw.cputype: 16777228\nhw.physicalcpu: 10\n"
        "machdep.cpu.brand_string: Apple M4\n",
    ),
)
XCODE_26 = (
    _probe("xcodebuild", "-version", stdout="Xcode 26.5\nBuild version 17F42\n"),
    _probe("xcode-select", "-p", stdout="/Applications/Xcode_26.5.app/Contents/Developer\n"),
    _probe("xcrun", "--sdk", "macosx", "--show-sdk-version", stdout="26.5\n"),
)
PROVED = _probe("sh", "-c", METAL_PROOF, stdout=f"{PROOF_MARK} metal3.1\n{PROOF_MARK} metal4.0\n")


def _host(*probes: Probe) -> Host:
    return observe(RecordedProber(recording_of({"probes": list(probes)}, name="a recording")))


def _findings(probes: Sequence[Probe], recipe: str = "v2.15.0") -> dict[str, Finding]:
    return {finding.id: finding for finding in inspect(_host(*probes), find_recipe(recipe))}


@pytest.mark.parametrize("row", HOSTS, ids=lambda row: row["id"])
def test_recorded_host_has_exactly_the_stated_blockers_and_warnings(row: dict[str, Any]) -> None:
    host = observe(RecordedProber(recording_of(row, name=row["id"])))
    findings = inspect(host, find_recipe(row["wheel"]["torch"]))

    expect = dict(row["expect"])
    assert [name for name in blockers(findings) if name in BLOCKERS] == expect.pop("blockers")
    assert warnings(findings) == expect.pop("warnings")
    assert {key: host.document()[key] for key in expect} == expect


@pytest.mark.parametrize("row", HOSTS, ids=lambda row: row["id"])
def test_recipes_have_the_floor_that_the_recorded_wheels_have(row: dict[str, Any]) -> None:
    assert find_recipe(row["wheel"]["torch"]).mps_floor == row["wheel"]["macos_floor"]


def test_every_blocker_and_warning_of_a_host_comes_up_with_what_fixes_it() -> None:
    seen: dict[str, Finding] = {}
    hosts = [(row["probes"], row["wheel"]["torch"]) for row in HOSTS]
    hosts.append(
        (
            [_probe("xcode-select", "-p", stderr=f"xcode-select: error: {_phrase('no_active_developer_directory')}")],
            "2.6",
        )
    )
    hosts.append(([_probe("pmset", "-g", "therm", stdout="\tCPU_Speed_Limit \t= 54\n")], "2.6"))
    for probes, torch in hosts:
        seen |= {name: f for name, f in _findings(probes, torch).items() if f.level in ("blocker", "warning")}

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
    findings = _findings([*MAC, _probe("xcrun", program, "-version", stderr=f"{words}\n", exit=1)])

    lines = [finding for finding in findings.values() if finding.found == situation.means]
    assert len(lines) == 1
    assert lines[0].level in ("blocker", "note")
    # A fix that names an Xcode, or brings the Command Line Tools alone, cannot work on this Mac without one.
    instead = lines[0].level == "blocker" and any(words in situation.fix for words in (USUAL, COMMANDS["install_clt"]))
    assert (lines[0].fix or "").startswith("install Xcode 26.5") if instead else lines[0].fix == situation.fix
    assert lines[0].link == situation.link


def test_what_is_not_recorded_is_neither_well_nor_ill() -> None:
    findings = inspect(_host(_probe("git", "--version", stdout="git version 2.50.1\n")), find_recipe("v2.15.0"))

    assert blockers(findings) == []
    assert {finding.id for finding in findings if finding.level == "ok"} == {"git"}
    assert warnings(findings) == ["gpu_unknown", "virtual_unknown", "xcode_unknown"]


def test_a_recording_that_answers_no_probe_of_ours_is_no_host() -> None:
    with pytest.raises(UsageError, match="answers none of our probes"):
        _host()


def test_a_path_or_a_status_never_proves_the_metal_compiler() -> None:
    path = _probe("xcrun", "-f", "metal", stdout="/Applications/Xcode_26.5.app/Contents/Developer/usr/bin/metal\n")
    status = _probe(
        "xcodebuild", "-showComponent", "MetalToolchain", stdout="Build Version: 17F42\nStatus: installed\n"
    )

    assert _findings([*MAC, *XCODE_26, path, status])["metal_compiler"].level == "not_recorded"


def test_a_missing_metal_toolchain_stops_only_recipes_that_compile_metal() -> None:
    probes = [*MAC, *XCODE_26, _probe("sh", "-c", METAL_PROOF, stderr=METAL_MISSING)]

    assert _findings(probes, "v2.15.0")["metal_toolchain_missing"].level == "blocker"
    assert _findings(probes, "v2.15.0")["metal_toolchain_missing"].fix == "xcodebuild -downloadComponent MetalToolchain"
    assert _findings(probes, "v2.4.1")["metal_toolchain_missing"].level == "note"


def test_a_component_that_needs_an_update_is_not_usable() -> None:
    status = _probe("xcodebuild", "-showComponent", "MetalToolchain", stdout="Status: installedUpdateAvailable\n")

    assert _findings([*MAC, *XCODE_26, status])["metal_toolchain_missing"].level == "blocker"


def test_three_compiled_lines_prove_the_metal_compiler_whatever_else_was_said() -> None:
    status = _probe("xcodebuild", "-showComponent", "MetalToolchain", stdout="Status: installedUpdateAvailable\n")
    findings = _findings([*MAC, *XCODE_26, status, PROVED])

    assert findings["metal_compiler"].level == "ok"
    assert blockers(tuple(findings.values())) == []


def test_metal_4_is_asked_of_the_compiler_where_the_wheel_must_hold_it() -> None:
    probes = [
        *MAC,
        *XCODE_26,
        _probe(
            "sh",
            "-c",
            METAL_PROOF,
            stdout=f"{PROOF_MARK} metal3.1\n",
            stderr="error: invalid value 'metal4.0' in '-std=metal4.0'\n",
        ),
    ]

    assert _findings(probes, "v2.15.0")["metal_standard_missing"].level == "blocker"
    assert _findings(probes, "v2.9.1")["metal_compiler"].level == "ok"


def test_another_xcode_that_suits_is_taken_by_developer_dir_and_nothing_is_switched() -> None:
    old, new = "/Applications/Xcode_15.2.app", "/Applications/Xcode_26.5.app"
    host = _host(
        *MAC,
        _probe("xcode-select", "-p", stdout="/Library/Developer/CommandLineTools\n"),
        _probe("xcodebuild", "-version", stderr=CLT, exit=1),
        _probe("mdfind", "kMDItemCFBundleIdentifier == 'com.apple.dt.Xcode'", stdout=f"{new}\n{old}\n"),
        _under(old, "xcodebuild", "-version", stdout="Xcode 15.2\nBuild version 15C500b\n"),
        _under(new, "xcodebuild", "-version", stdout="Xcode 26.5\nBuild version 17F42\n"),
        _under(new, "xcrun", "--sdk", "macosx", "--show-sdk-version", stdout="26.5\n"),
        _under(new, "sh", "-c", METAL_PROOF, stdout=f"{PROOF_MARK} metal3.1\n{PROOF_MARK} metal4.0\n"),
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
    probes = [*MAC, _probe("xcodebuild", "-version", stdout="Xcode 26.1.1\nBuild version 17B100\n")]
    finding = _findings(probes, "v2.15.0")["bad_xcode"]

    assert "cooperative tensor" in finding.found
    assert finding.link == "https://github.com/pytorch/pytorch/issues/194946"


def test_an_old_sdk_is_told_apart_from_an_old_xcode() -> None:
    probes = [*MAC, *XCODE_26[:2], _probe("xcrun", "--sdk", "macosx", "--show-sdk-version", stdout="12.3\n")]

    assert _findings(probes, "v2.9.1")["sdk_too_old"].found == "12.3"


def test_clang_that_is_dead_stops_the_build_though_xcodebuild_reads_fine() -> None:
    dead = _probe("/usr/bin/clang", "--version", stderr=f"{_phrase('xcode_system_resources_outdated')}\n", exit=1)

    assert _findings([*MAC, *XCODE_26, PROVED, dead])["xcode_system_resources_outdated"].level == "blocker"


def test_an_answer_that_is_not_understood_is_shown_with_its_text() -> None:
    finding = _findings([*MAC, _probe("xcodebuild", "-version", stdout="Xcode of tomorrow\n")])["not_understood"]

    assert "Xcode of tomorrow" in finding.found
    assert "xcodebuild -version" in finding.found


def test_what_a_recipe_could_not_prove_is_told() -> None:
    recipe = find_recipe("v2.15.0")
    told = [finding.found for finding in inspect(_host(*MAC), recipe) if finding.id == "unproved"]

    assert recipe.unproved and told == list(recipe.unproved)


def test_variables_and_headers_that_would_leak_are_named() -> None:
    leaks = next(probe for probe in PROBES if probe.name == "variables")
    headers = next(probe for probe in PROBES if probe.name == "headers")
    findings = _findings(
        [
            _probe(
                *leaks.argv, stdout="set: CPATH\nset: DISTUTILS_DEBUG\nsemicolon: LS_COLORS\nvariables: all listed\n"
            ),
            _probe(*headers.argv, stdout="/opt/homebrew/include\n"),
        ]
    )

    assert "CPATH, DISTUTILS_DEBUG" in findings["variables_leak"].found
    assert "LS_COLORS" in findings["semicolon_in_variable"].found
    assert findings["headers_leak"].found == "/opt/homebrew/include"


def test_jobs_follow_the_memory_and_the_cores() -> None:
    def jobs(memory_gb: int, cores: int) -> int:
        rows = f"hw.memsize: {memory_gb * 2**30}\nhw.physicalcpu: {cores}\nmachdep.cpu.brand_string: Apple M2\n"
        return _host(_probe("sysctl", "hw.memsize", "hw.physicalcpu", "machdep.cpu.brand_string", stdout=rows)).jobs

    assert [jobs(8, 8), jobs(64, 10), jobs(1, 8)] == [4, 10, 1]


def test_check_host_tells_every_reason_at_once_and_what_fixes_each() -> None:
    recording = recording_of(next(row for row in HOSTS if row["id"].startswith("vmware")), name="x")
    with pytest.raises(HostError) as raised:
        check_host(find_recipe("v2.9.1"), RecordedProber(recording))

    message = str(raised.value)
    for word in ("Intel", "macOS: 10.15.4", "Command Line Tools", "8.9 GiB free", "fix: "):
        assert word in message, word
    assert raised.value.document["blockers"][0] == "intel_cpu"
    assert "virtual_gpu" not in raised.value.document["blockers"]


def test_a_guest_may_build_and_the_host_goes_into_the_build_environment() -> None:
    recording = recording_of(next(row for row in HOSTS if row["id"].startswith("tart")), name="x")
    host = check_host(find_recipe("v2.9.1"), RecordedProber(recording))

    assert xcode_toolchain(host).variables["DEVELOPER_DIR"] == "/Applications/Xcode.app/Contents/Developer"
    assert xcode_toolchain(host).facts == {"xcode": "16.2 16C5032a", "sdk": "15.2"}


def test_linux_lacks_everything_for_a_mac_build_and_nothing_for_the_sample() -> None:
    linux = [_probe("uname", "-a", stdout="Linux box 6.1.0 #1 SMP x86_64 GNU/Linux\n")]
    stopped = blockers(inspect(_host(*linux), find_recipe("v2.15.0")))

    assert stopped == ["not_macos", "not_apple_silicon", "xcode_missing", "sdk_missing", "metal_compiler_missing"]
    assert blockers(inspect(_host(*linux), find_recipe("sample"))) == []


def test_the_outlook_names_what_each_recipe_would_take_and_what_one_xcode_would_unlock() -> None:
    old = _probe("xcodebuild", "-version", stdout="Xcode 14.3.1\nBuild version 14E300c\n")
    host = _host(*MAC, old, _probe("xcrun", "--sdk", "macosx", "--show-sdk-version", stdout="13.3\n"))
    recipes = all_recipes()
    rows = {row.recipe: row.blockers for row in buildability_of(host, recipes)}
    unlocked = unlocked_by(host, recipes)

    assert rows["v2.5.1"] == ()
    assert "xcode_too_old_for_recipe" in rows["v2.15.0"]
    assert any("Xcode 26.5" in what and "v2.15.0" in names for what, names in unlocked.items())
    assert not any("v2.5.1" in names for names in unlocked.values())


def test_every_probe_says_why_it_is_asked_and_what_it_may_reveal() -> None:
    assert len({probe.argv for probe in PROBES}) == len(PROBES)
    assert len({probe.name for probe in PROBES}) == len(PROBES)
    for probe in PROBES:
        assert probe.why and probe.reveals, probe.name
    # Side by side as they run, a recording takes as long as its slowest probe may.
    assert max(probe.seconds for probe in probes_for("Darwin", everything=True)) <= 12


BRAND = _probe("sysctl", "-n", "machdep.cpu.brand_string", stdout="Apple M2\n")


@pytest.mark.parametrize(
    "x86",
    [
        _probe("uname", "-m", stdout="x86_64\n"),
        _probe("sysctl", "-n", "hw.cputype", stdout="7\n"),
        _probe("sysctl", "-n", "machdep.cpu.features", stdout="FPU VME DE\n"),
        _probe("sysctl", "-n", "sysctl.proc_translated", stdout="1\n"),
        _probe("python3", "-c", "import platform; print(platform.machine())", stdout="x86_64\n"),
    ],
    ids=lambda probe: " ".join(probe["argv"][:3]),
)
def test_what_looks_like_x86_is_translated_only_beside_a_sign_of_apple_silicon(x86: Probe) -> None:
    alone = _host(x86).rosetta

    assert _host(BRAND, x86).rosetta is True
    assert alone is True if "proc_translated" in str(x86["argv"]) else alone == "unknown"


def test_the_kernel_tells_that_macos_is_too_old_where_nothing_else_tells_its_version() -> None:
    def ids(darwin: str) -> set[str]:
        text = f"Darwin mac.local {darwin} Darwin Kernel Version {darwin}: x; root:x/RELEASE_ARM64_T8103 arm64\n"
        return set(blockers(inspect(_host(_probe("uname", "-a", stdout=text)), find_recipe("v2.9.1"))))

    assert "macos_too_old_for_wheel" in ids("22.6.0")
    assert "macos_too_old_for_wheel" not in ids("23.0.0")


def test_a_developer_dir_that_names_nothing_is_mended_by_unsetting_it() -> None:
    words = "xcrun: error: missing DEVELOPER_DIR path: /Applications/Gone.app/Contents/Developer\n"
    finding = _findings([*MAC, _probe("xcrun", "--sdk", "macosx", "--show-sdk-version", stderr=words, exit=1)])

    assert finding["xcode_missing"].fix == "unset DEVELOPER_DIR"


def test_a_component_that_is_there_and_not_seen_is_mended_by_forgetting_first() -> None:
    status = _probe(
        "xcodebuild", "-showComponent", "MetalToolchain", stdout="Build Version: 17F42\nStatus: installed\n"
    )
    missing = _probe("sh", "-c", METAL_PROOF, stderr=METAL_MISSING)

    assert str(_findings([*MAC, *XCODE_26, missing, status])["metal_toolchain_missing"].fix).startswith(
        "xcrun --kill-cache"
    )


def test_old_system_resources_and_an_echoed_developer_dir_are_signs_and_no_faults() -> None:
    receipt = "package-id: com.apple.pkg.XcodeSystemResources\nversion: 16.2.0.0\nvolume: /\n"
    findings = _findings(
        [
            *MAC,
            XCODE_26[0],
            _probe("xcode-select", "-p", stdout="/opt/none\n"),
            _probe("pkgutil", "--pkg-info=com.apple.pkg.XcodeSystemResources", stdout=receipt),
        ]
    )

    assert findings["system_resources_older"].level == "note"
    assert findings["system_resources_older"].fix == "sudo xcodebuild -runFirstLaunch"
    assert findings["developer_dir_from_env"].level == "note"


def _thermal(*probes: tuple[list[str], str]) -> tuple[list[str], list[str]]:
    answers = tuple(RecordedProbe(argv=tuple(argv), stdout=stdout, exit=0) for argv, stdout in probes)
    findings = inspect(observe(RecordedProber(Recording(probes=answers))), find_recipe("v2.6.0"))
    ours = [each for each in findings if each.what == "Temperature"]
    return [each.id for each in ours], [each.level for each in ours]


NOTHING = (["pmset", "-g", "therm"], "Note: No thermal warning level has been recorded\n")
LEVEL = ["notifyutil", "-g", "com.apple.system.thermalpressurelevel"]


@pytest.mark.parametrize(
    ("said", "finding", "level"),
    [
        ("com.apple.system.thermalpressurelevel 0\n", "thermal", "ok"),
        ("com.apple.system.thermalpressurelevel 2\n", "thermal_throttled", "warning"),
        ("notifyutil: something nobody recorded\n", "thermal_unknown", "note"),
        ("", "thermal_unknown", "note"),
    ],
)
def test_a_healthy_mac_gets_no_warning_of_heat(said: str, finding: str, level: str) -> None:
    assert _thermal(NOTHING, (LEVEL, said)) == ([finding], [level])
    assert _thermal(NOTHING) == (["thermal_unknown"], ["warning"])  # an older recording: nothing else was asked


@pytest.mark.parametrize("build", ["15C500b", "14E300c", "13F17a", "15F31d", "27A266a"])
def test_a_released_build_with_a_small_letter_is_no_beta(build: str) -> None:
    plist = f"<key>CFBundleShortVersionString</key><string>15.2</string><key>ProductBuildVersion</key><string>{build}"
    for argv, stdout in (
        (["xcodebuild", "-version"], f"Xcode 15.2\nBuild version {build}\n"),
        (["sw_vers", "-buildVersion"], f"{build}\n"),
        (["cat", "/Applications/Xcode.app/Contents/version.plist"], f"{plist}</string></dict></plist>"),
    ):
        assert parse_probe(argv, stdout, "", 0).get("beta") in (False, None), argv
    assert not is_beta_build(build)
