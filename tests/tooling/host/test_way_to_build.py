"""From a fresh Mac to a build: the commands that lead there, once, in order; no fix names an absent Xcode."""

from __future__ import annotations

import shlex

import pytest
from mps_build.common.errors import HostError
from mps_build.common.recipe.catalogue import find_recipe
from mps_build.host.host import Host, observe
from mps_build.host.macos.parsers import parse_probe
from mps_build.host.probes.probers import RecordedProber
from mps_build.host.probes.recording import RecordedProbe, Recording
from mps_build.host.requirements.findings import Finding
from mps_build.host.requirements.inspect import blockers, inspect
from mps_build.host.requirements.way import way_to_build
from mps_build.wheel_build.planning import check_host

CLT = "/Library/Developer/CommandLineTools"
NO_TOOLS = (
    "xcode-select: note: No developer tools were found, requesting install.\n"
    "If developer tools are located at a non-default location on disk, use `sudo xcode-select --switch"
    " path/to/Xcode.app` to specify the Xcode that you wish to use for command line developer tools, and cancel the"
    " installation dialog.\nSee `man xcode-select` for more details.\n"
)
NEEDS_XCODE = (
    f"xcode-select: error: tool 'xcodebuild' requires Xcode, but active developer directory '{CLT}'"
    " is a command line tools instance\n"
)
NO_METAL = 'xcrun: error: unable to find utility "metal", not a developer tool or in PATH\n'
LICENSE = "You have not agreed to the Xcode license agreements. Please run 'sudo xcodebuild -license'\n"
TOOLCHAIN = (
    "error: cannot execute tool 'metal' due to missing Metal Toolchain; use: xcodebuild -downloadComponent"
    " MetalToolchain\n"
)
VERSION = "ProductName:\t\tmacOS\nProductVersion:\t\t26.4\nBuildVersion:\t\t25E1\n"
M2 = (
    RecordedProbe(argv=("sw_vers",), stdout=VERSION, exit=0),
    RecordedProbe(argv=("uname", "-m"), stdout="arm64\n", exit=0),
)


def _mac(*answers: tuple[str, str, str, int]) -> Host:
    """An M2 with what each tool says: words, stdout, stderr, exit."""
    probes = [RecordedProbe(argv=tuple(shlex.split(w)), stdout=o, stderr=e, exit=x) for w, o, e, x in answers]
    return observe(RecordedProber(Recording(probes=(*M2, *probes))))


def _fresh() -> Host:
    words = (
        "git --version",
        "xcodebuild -version",
        "xcrun --sdk macosx --show-sdk-version",
        "/usr/bin/clang --version",
    )
    error = "xcode-select: error: Unable to get active developer directory. Use `sudo xcode-select --switch path`.\n"
    return _mac(("xcode-select -p", "", error, 2), *((each, "", NO_TOOLS, 1) for each in words))


def _clt_only() -> Host:
    return _mac(
        ("xcode-select -p", f"{CLT}\n", "", 0),
        ("xcodebuild -version", "", NEEDS_XCODE, 1),
        ("xcrun --sdk macosx metal --version", "", NO_METAL, 72),
        ("git --version", "git version 2.50.1 (Apple Git-155)\n", "", 0),
    )


def _seen(host: Host, name: str) -> tuple[tuple[str, ...], tuple[Finding, ...]]:
    recipe = find_recipe(name)
    findings = inspect(host, recipe)
    return way_to_build(host, recipe, findings), findings


def test_todays_words_of_a_fresh_mac_are_understood() -> None:
    for argv in (["git", "--version"], ["xcodebuild", "-version"], ["clang", "--version"], ["xcrun", "-f", "metal"]):
        facts = parse_probe(argv, "", NO_TOOLS, 1)
        assert (facts["error"], facts["dialog"]) == ("no_developer_tools", True)


@pytest.mark.parametrize("host", [_fresh(), _clt_only()], ids=["nothing installed", "Command Line Tools only"])
def test_a_mac_without_xcode_is_led_to_a_build_of_the_newest_release(host: Host) -> None:
    way, findings = _seen(host, "v2.15.0")

    place = "env DEVELOPER_DIR=/Applications/Xcode_26.5.app/Contents/Developer xcodebuild"
    assert way == (
        "install Xcode 26.5 (26.2 or newer will do, where this macOS runs it):"
        " https://developer.apple.com/download/all/?q=Xcode%2026.5",
        "xip --expand Xcode_26.5.xip && mv Xcode.app /Applications/Xcode_26.5.app",
        f"sudo {place} -license accept",
        f"sudo {place} -runFirstLaunch",
        f"{place} -downloadComponent MetalToolchain",
        "nox -s build_wheel -- v2.15.0",
    )
    fixes = [finding.fix or "" for finding in findings if finding.level == "blocker"]
    assert not [fix for fix in fixes if "xcode-select" in fix or "/Applications/Xcode.app" in fix]
    ids = [finding.id for finding in findings if finding.level == "blocker"]
    assert len(ids) == len(set(ids)), "each cause once"
    assert not [finding for finding in findings if finding.id == "not_understood"]


def test_an_older_release_asks_for_its_own_xcode_and_for_no_component() -> None:
    way, _ = _seen(_clt_only(), "v2.6.0")

    assert way[0].startswith("install Xcode 15.4 (15.3 or newer will do, ")
    assert not [step for step in way if "MetalToolchain" in step]


def test_a_licence_alone_takes_one_command() -> None:
    chosen = "/Applications/Xcode 26.app/Contents/Developer"
    host = _mac(("xcode-select -p", f"{chosen}\n", "", 0), ("xcodebuild -version", "", LICENSE, 69))

    way, findings = _seen(host, "v2.15.0")

    assert way == ("sudo xcodebuild -license accept", "nox -s doctor", "nox -s build_wheel -- v2.15.0")
    assert "xcode_license" in blockers(findings)


def test_a_missing_component_alone_takes_one_command() -> None:
    chosen = "/Applications/Xcode.app/Contents/Developer"
    host = _mac(
        ("xcode-select -p", f"{chosen}\n", "", 0),
        ("xcodebuild -version", "Xcode 26.5\nBuild version 17F42\n", "", 0),
        ("xcrun --sdk macosx --show-sdk-version", "26.5\n", "", 0),
        ("xcrun --sdk macosx metal --version", "", TOOLCHAIN, 1),
        ("git --version", "git version 2.50.1 (Apple Git-155)\n", "", 0),
    )

    way, _ = _seen(host, "v2.15.0")

    assert way == ("xcodebuild -downloadComponent MetalToolchain", "nox -s build_wheel -- v2.15.0")


def test_an_xcode_of_another_name_is_named_by_its_own() -> None:
    host = _mac(
        ("xcode-select -p", f"{CLT}\n", "", 0),
        ("xcodebuild -version", "", NEEDS_XCODE, 1),
        ("mdfind \"kMDItemCFBundleIdentifier == 'com.apple.dt.Xcode'\"", "/Applications/Xcode old.app\n", "", 0),
    )

    fixes = [finding.fix or "" for finding in _seen(host, "v2.15.0")[1]]

    assert not [fix for fix in fixes if "/Applications/Xcode.app" in fix]
    assert [fix for fix in fixes if "'/Applications/Xcode old.app/Contents/Developer'" in fix]


def test_build_wheel_says_the_way_too() -> None:
    probes = tuple(
        RecordedProbe(argv=row.argv, stderr=row.text, exit=1)
        for row in _fresh().observations
        if row.argv not in {probe.argv for probe in M2}
    )
    with pytest.raises(HostError) as stopped:
        check_host(find_recipe("v2.15.0"), RecordedProber(Recording(probes=(*M2, *probes))))

    assert "to build it here, in this order:\n  1. install Xcode 26.5" in str(stopped.value)
    assert stopped.value.document["way"][-1] == "nox -s build_wheel -- v2.15.0"


def test_where_nothing_stops_or_nothing_helps_there_is_no_way() -> None:
    kernel = RecordedProbe(argv=("uname", "-v"), stdout="Darwin Kernel Version 23.4.0: x/RELEASE_X86_64\n", exit=0)
    intel = observe(RecordedProber(Recording(probes=(kernel,))))

    assert way_to_build(intel, find_recipe("v2.15.0"), inspect(intel, find_recipe("v2.15.0"))) == ()
