"""Single findings about a host: jobs, guests, Rosetta, heat, tools that echo; and what each Xcode is good for."""

from __future__ import annotations

import pytest
from macs import (
    MAC,
    METAL_MISSING,
    XCODE_26,
    Probe,
    all_recipes,
    answered,
    find_recipe,
    findings_of,
    host_of,
    hosts,
)
from mps_build.common.errors import HostError
from mps_build.host.host import observe, xcode_toolchain
from mps_build.host.macos.parsers import parse_probe
from mps_build.host.macos.versions import is_beta_build
from mps_build.host.probes.probers import RecordedProber
from mps_build.host.probes.recording import RecordedProbe, Recording, recording_of
from mps_build.host.probes.table import METAL_PROOF, PROBES, probes_for
from mps_build.host.requirements.inspect import blockers, buildability_of, inspect, unlocked_by
from mps_build.wheel_build.planning import check_host


def test_variables_and_headers_that_would_leak_are_named() -> None:
    leaks = next(probe for probe in PROBES if probe.name == "variables")
    headers = next(probe for probe in PROBES if probe.name == "headers")
    findings = findings_of(
        [
            answered(
                *leaks.argv, stdout="set: CPATH\nset: DISTUTILS_DEBUG\nsemicolon: LS_COLORS\nvariables: all listed\n"
            ),
            answered(*headers.argv, stdout="/opt/homebrew/include\n"),
        ]
    )

    assert "CPATH, DISTUTILS_DEBUG" in findings["variables_leak"].found
    assert "LS_COLORS" in findings["semicolon_in_variable"].found
    assert findings["headers_leak"].found == "/opt/homebrew/include"


def test_jobs_follow_the_memory_and_the_cores() -> None:
    def jobs(memory_gb: int, cores: int) -> int:
        rows = f"hw.memsize: {memory_gb * 2**30}\nhw.physicalcpu: {cores}\nmachdep.cpu.brand_string: Apple M2\n"
        return host_of(answered("sysctl", "hw.memsize", "hw.physicalcpu", "machdep.cpu.brand_string", stdout=rows)).jobs

    assert [jobs(8, 8), jobs(64, 10), jobs(1, 8)] == [4, 10, 1]


def test_check_host_tells_every_reason_at_once_and_what_fixes_each() -> None:
    recording = recording_of(next(row for row in hosts() if row["id"].startswith("vmware")), name="x")
    with pytest.raises(HostError) as raised:
        check_host(find_recipe("v2.9.1"), RecordedProber(recording))

    message = str(raised.value)
    for word in ("Intel", "macOS: 10.15.4", "Command Line Tools", "8.9 GiB free", "fix: "):
        assert word in message, word
    assert raised.value.document["blockers"][0] == "intel_cpu"
    assert "virtual_gpu" not in raised.value.document["blockers"]


def test_a_guest_may_build_and_the_host_goes_into_the_build_environment() -> None:
    recording = recording_of(next(row for row in hosts() if row["id"].startswith("tart")), name="x")
    host = check_host(find_recipe("v2.9.1"), RecordedProber(recording))

    assert xcode_toolchain(host).variables["DEVELOPER_DIR"] == "/Applications/Xcode.app/Contents/Developer"
    assert xcode_toolchain(host).facts == {"xcode": "16.2 16C5032a", "sdk": "15.2"}


def test_linux_lacks_everything_for_a_mac_build_and_nothing_for_the_sample() -> None:
    linux = [answered("uname", "-a", stdout="Linux box 6.1.0 #1 SMP x86_64 GNU/Linux\n")]
    stopped = blockers(inspect(host_of(*linux), find_recipe("v2.15.0")))

    assert stopped == ["not_macos", "not_apple_silicon", "xcode_missing", "sdk_missing", "metal_compiler_missing"]
    assert blockers(inspect(host_of(*linux), find_recipe("sample"))) == []


def test_the_outlook_names_what_each_recipe_would_take_and_what_one_xcode_would_unlock() -> None:
    old = answered("xcodebuild", "-version", stdout="Xcode 14.3.1\nBuild version 14E300c\n")
    host = host_of(*MAC, old, answered("xcrun", "--sdk", "macosx", "--show-sdk-version", stdout="13.3\n"))
    recipes = all_recipes()
    rows = {row.recipe: row.blockers for row in buildability_of(host, recipes)}
    unlocked = unlocked_by(host, recipes)

    assert rows["v2.5.1"] == ()
    assert "xcode_too_old_for_recipe" in rows["v2.15.0"]
    assert any("Xcode 26.5" in what and "v2.15.0" in names for what, names in unlocked.items())
    assert not any("v2.5.1" in names for names in unlocked.values())


def test_every_probe_says_why_it_is_queried_and_what_it_may_reveal() -> None:
    assert len({probe.argv for probe in PROBES}) == len(PROBES)
    assert len({probe.name for probe in PROBES}) == len(PROBES)
    for probe in PROBES:
        assert probe.why and probe.reveals, probe.name
    # Side by side as they run, a recording takes as long as its slowest probe may.
    assert max(probe.seconds for probe in probes_for("Darwin", everything=True)) <= 12


BRAND = answered("sysctl", "-n", "machdep.cpu.brand_string", stdout="Apple M2\n")


@pytest.mark.parametrize(
    "x86",
    [
        answered("uname", "-m", stdout="x86_64\n"),
        answered("sysctl", "-n", "hw.cputype", stdout="7\n"),
        answered("sysctl", "-n", "machdep.cpu.features", stdout="FPU VME DE\n"),
        answered("sysctl", "-n", "sysctl.proc_translated", stdout="1\n"),
        answered("python3", "-c", "import platform; print(platform.machine())", stdout="x86_64\n"),
    ],
    ids=lambda probe: " ".join(probe["argv"][:3]),
)
def test_what_looks_like_x86_is_translated_only_beside_a_sign_of_apple_silicon(x86: Probe) -> None:
    alone = host_of(x86).rosetta

    assert host_of(BRAND, x86).rosetta is True
    assert alone is True if "proc_translated" in str(x86["argv"]) else alone == "unknown"


def test_the_kernel_tells_that_macos_is_too_old_where_nothing_else_tells_its_version() -> None:
    def ids(darwin: str) -> set[str]:
        text = f"Darwin mac.local {darwin} Darwin Kernel Version {darwin}: x; root:x/RELEASE_ARM64_T8103 arm64\n"
        return set(blockers(inspect(host_of(answered("uname", "-a", stdout=text)), find_recipe("v2.9.1"))))

    assert "macos_too_old_for_wheel" in ids("22.6.0")
    assert "macos_too_old_for_wheel" not in ids("23.0.0")


def test_a_developer_dir_that_names_nothing_is_fixed_by_unsetting_it() -> None:
    words = "xcrun: error: missing DEVELOPER_DIR path: /Applications/Gone.app/Contents/Developer\n"
    finding = findings_of([*MAC, answered("xcrun", "--sdk", "macosx", "--show-sdk-version", stderr=words, exit=1)])

    assert finding["xcode_missing"].fix == "unset DEVELOPER_DIR"


def test_a_component_that_is_there_and_not_seen_is_fixed_by_forgetting_first() -> None:
    status = answered(
        "xcodebuild", "-showComponent", "MetalToolchain", stdout="Build Version: 17F42\nStatus: installed\n"
    )
    missing = answered("sh", "-c", METAL_PROOF, stderr=METAL_MISSING)

    assert str(findings_of([*MAC, *XCODE_26, missing, status])["metal_toolchain_missing"].fix).startswith(
        "xcrun --kill-cache"
    )


def test_old_system_resources_and_an_echoed_developer_dir_are_signs_and_no_faults() -> None:
    receipt = "package-id: com.apple.pkg.XcodeSystemResources\nversion: 16.2.0.0\nvolume: /\n"
    findings = findings_of(
        [
            *MAC,
            XCODE_26[0],
            answered("xcode-select", "-p", stdout="/opt/none\n"),
            answered("pkgutil", "--pkg-info=com.apple.pkg.XcodeSystemResources", stdout=receipt),
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
    assert _thermal(NOTHING) == (["thermal_unknown"], ["warning"])  # an older recording: nothing else was queried


@pytest.mark.parametrize("build", ["15C500b", "14E300c", "13F17a", "15F31d", "27A266a"])
def test_a_released_build_with_a_small_character_is_no_beta(build: str) -> None:
    plist = f"<key>CFBundleShortVersionString</key><string>15.2</string><key>ProductBuildVersion</key><string>{build}"
    for argv, stdout in (
        (["xcodebuild", "-version"], f"Xcode 15.2\nBuild version {build}\n"),
        (["cat", "/Applications/Xcode.app/Contents/version.plist"], f"{plist}</string></dict></plist>"),
    ):
        assert parse_probe(argv, stdout, "", 0).get("beta") in (False, None), argv
    assert not is_beta_build(build)


@pytest.mark.parametrize(
    ("build", "beta"),
    [("25A5279m", True), ("20A4299v", True), ("19A471t", True), ("25D771280a", False), ("24D60", False)],
)
def test_a_macos_whose_build_ends_in_a_small_character_is_a_beta(build: str, beta: bool) -> None:
    plist = f"<plist><dict><key>ProductVersion</key><string>15.2</string><key>ProductBuildVersion</key><string>{build}"
    for argv, stdout in (
        (["sw_vers", "-buildVersion"], f"{build}\n"),
        (["sw_vers"], f"ProductName: macOS\nProductVersion: 15.2\nBuildVersion: {build}\n"),
        (["cat", "/System/Library/CoreServices/SystemVersion.plist"], f"{plist}</string></dict></plist>"),
    ):
        assert parse_probe(argv, stdout, "", 0)["beta"] is beta, argv
