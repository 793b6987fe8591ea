"""Forms that the tools are given to print and no specimen holds: other eras, other options, other languages."""

from __future__ import annotations

import random
from collections.abc import Sequence
from typing import Any

import pytest
from macs import specimens
from mps_build.host.macos.answers import calls_of
from mps_build.host.macos.parsers import parse_probe

DEVELOPER = "/Applications/Xcode.app/Contents/Developer"
INTEL = """\
Hardware:

    Hardware Overview:

      Model Name: MacBook Pro
      Model Identifier: MacBookPro16,1
      Processor Name: 6-Core Intel Core i7
      Total Number of Cores: 6
      L2 Cache (per Core): 256 KB
      Memory: 16 GB
      System Firmware Version: 1916.80.2.0.0
      Serial Number (system): XXXXXXXXXX
"""
SDK_RECORDS = f"""\
DriverKit23.2.sdk - DriverKit 23.2 (driverkit23.2)
SDKVersion: 23.2

MacOSX14.2.sdk - macOS 14.2 (macosx14.2)
SDKVersion: 14.2
Path: {DEVELOPER}/Platforms/MacOSX.platform/Developer/SDKs/MacOSX14.2.sdk
ProductBuildVersion: 23C53

Xcode 15.2
Build version 15C500b
"""
TORN = ("", "(", '"', "\x1b[", "9" * 80, ":", "\u2028", "-1", "/")
CASES: list[tuple[Sequence[str], str, str, dict[str, Any]]] = [
    (["xcodebuild", "-version"], "npm ERR! Xcode 16.2\nnpm ERR! Build version 16C5032a\n", "", {"version": "16.2"}),
    (
        ["xcodebuild", "-version", "-sdk"],
        SDK_RECORDS,
        "",
        {"version": "15.2", "sdk_version": "14.2", "sdk_build": "23C53"},
    ),
    (["sh", "-c", "x"], "Xcode 15.2\nBuild version 15C500b\nXcode 16.1\nBuild version 16B40\n", "", {"version": None}),
    (["./build.sh"], "Memory: 16 GB\nChip: Apple M9\n", "", {"not_understood": True}),
    (["xcodebuild", "-version", "-sdk", "macosx", "SDKVersion"], "14.2\n", "", {"sdk_version": "14.2"}),
    (
        ["xcodebuild", "-showComponent", "MetalToolchain"],
        "Status: installing\n",
        "",
        {"status": "installing", "usable": None},
    ),
    (["xcrun", "metal", "-v"], "", "Apple LLVM version 902.11 (metalfe-902.11.1)\n", {"metal_version": "902.11"}),
    (
        ["clang", "--version"],
        "Apple LLVM version 10.0.1 (clang-1001.0.46.4)\n",
        "",
        {"vendor": "apple", "clang_version": "10.0.1"},
    ),
    (
        ["gcc", "--version"],
        "Apple clang version 12.0.0 (clang-1200.0.32.27)\n",
        "Configured with: x\n",
        {"vendor": "apple"},
    ),
    (["ld", "-v"], "", "@(#)PROGRAM:ld-classic  PROJECT:ld64-957.1\n", {"linker": "ld_classic", "ld_version": "957.1"}),
    (["ld", "-v"], "", "@(#)PROGRAM:ld  PROJECT:dyld-1015.7\n", {"linker": "ld_prime", "ld_version": "1015.7"}),
    (["sw_vers"], "ProductName:\tmacOS\nProductVersion:\t10.16\n", "", {"compat": True, "product": "macOS"}),
    (["sw_vers", "-productVersion"], "14.6.1\n", "", {"macos": "14.6.1"}),
    (
        ["uname", "-v"],
        "Darwin Kernel Version 20.1.0: x; root:x/RELEASE_ARM64_T8020\n",
        "",
        {"macos_major": 11, "virtual": False},
    ),
    (["uname", "-srm"], "Darwin 24.3.0 arm64\n", "", {"darwin": "24.3.0", "arch": "arm64"}),
    (["sysctl", "-n", "hw.memsize", "machdep.cpu.brand_string"], "17179869184\nApple M2\n", "", {"chip": "Apple M2"}),
    (["sysctl", "-n", "sysctl.proc_translated"], "-1\n", "", {"rosetta": False, "value": "-1"}),
    (["sysctl", "hw.optional.arm64"], "hw.optional.arm64: 1\n", "", {"apple_silicon": True, "rosetta": None}),
    (["sh", "-c", "echo $SDKROOT"], "/Library/x/MacOSX14.5.sdk\n", "", {"sdkroot": "/Library/x/MacOSX14.5.sdk"}),
    (["env"], f"A=b\nDEVELOPER_DIR={DEVELOPER}\n", "", {"developer_dir": DEVELOPER, "kind": "xcode", "from_env": True}),
    (["sysctl", "-n", "hw.cputype"], "7\n", "", {"rosetta": "unknown", "apple_silicon": "unknown"}),
    (
        ["sysctl", "machdep.cpu"],
        "machdep.cpu.brand_string: Apple M1\nmachdep.cpu.family: 6\n",
        "",
        {"rosetta": True, "apple_silicon": True},
    ),
    (
        ["system_profiler", "SPHardwareDataType"],
        INTEL,
        "",
        {"apple_silicon": False, "virtual": "unknown", "cpu_cores": 6},
    ),
    (
        ["diskutil", "info", "/"],
        "   Mount Point:  /\n   Name (User Visible):  APFS (Case-sensitive)\n",
        "",
        {"case_sensitive": True},
    ),
    (
        ["pmset", "-g", "custom"],
        "Battery Power:\n lowpowermode 1\nAC Power:\n lowpowermode 0\n",
        "",
        {"not_understood": True},
    ),
    (["csrutil", "status"], "System Integrity Protection status: disabled.\n", "", {"sip": "disabled"}),
    (["file", "-L", "x"], "x: Mach-O 64-bit arm64 executable, flags:<NOUNDEFS>\n", "", {"archs": ["arm64"]}),
    (["python3", "-m", "platform"], "macOS-26.0-arm64-arm-64bit-Mach-O\n", "", {"macos": "26.0", "arch": "arm64"}),
    (["cat", "x.crash"], "Code Type:  X86-64 (Translated)\n", "", {"rosetta": True}),
    (
        ["git", "status"],
        "",
        "xcode-select: note: no developer tools were found at '/Applications/Xcode.app', "
        "and no install could be requested\n",
        {"error": "no_developer_tools", "developer_dir": "/Applications/Xcode.app"},
    ),
    (
        ["xcrun", "-f", "clang"],
        "",
        "xcrun: error: missing DEVELOPER_DIR path: /Applications/Xcode_15.4.app/Conte\nnts/Developer\n",
        {"error": "developer_dir_missing"},
    ),
    (
        ["xcrun", "clang"],
        "",
        "xcrun: error: invalid active developer path (/Applications/Xcode (old).app/Contents/Developer), "
        "missing xcrun at: x\n",
        {"developer_dir": "/Applications/Xcode (old).app/Contents/Developer"},
    ),
]


@pytest.mark.parametrize(("argv", "stdout", "stderr", "facts"), CASES, ids=lambda value: None)
def test_form_is_read(argv: Sequence[str], stdout: str, stderr: str, facts: dict[str, Any]) -> None:
    answer = parse_probe(argv, stdout, stderr, 0)

    assert {key: answer.get(key) for key in facts} == facts


def test_a_path_that_a_wrapped_message_may_have_torn_is_left_out() -> None:
    answer = parse_probe(
        ["xcrun"], "", "xcrun: error: missing DEVELOPER_DIR path: /Applications/Xcode_15.4.app/Conte\nnts/x\n"
    )

    assert answer == {"error": "developer_dir_missing"}


@pytest.mark.parametrize(
    ("argv", "programs"),
    [
        (["/usr/bin/xcrun", "--sdk", "macosx", "metal", "--version"], ["metal"]),
        (["xcrun", "--sdk", "macosx", "--show-sdk-path"], ["xcrun"]),
        (["sudo", "-n", "powermetrics", "-n", "1"], ["powermetrics"]),
        (["env", "-i", "A=b c", "timeout", "-k", "5", "60", "/usr/bin/xcodebuild", "-version"], ["xcodebuild"]),
        (["arch", "-x86_64", "uname", "-m"], ["uname"]),
        (["bash", "-exc", "if true; then xcrun metal -v 2>&1 | head -1; fi"], ["true", "metal", "head", "fi"]),
        (["sh", "-c", "echo 'unclosed"], []),
        (["sh", "script.sh"], ["sh"]),
        ([], []),
    ],
)
def test_the_program_that_answers_is_found_behind_wrappers_and_scripts(argv: list[str], programs: list[str]) -> None:
    assert [call.program for call in calls_of(argv)] == programs


def test_variables_before_a_program_are_its_own() -> None:
    for argv in (["xcrun", "metal", "--version"], ["sh", "-c", "xcrun metal --version 2>&1"]):
        (call,) = calls_of(["env", "DEVELOPER_DIR=/x y", *argv])

        assert (call.program, dict(call.environ)) == ("metal", {"DEVELOPER_DIR": "/x y"})


def test_no_text_however_torn_or_shuffled_makes_a_parser_crash() -> None:
    chance = random.Random(20261121)
    rows = specimens("xcode", "system")
    for _ in range(1500):
        text = chance.choice(rows)["stdout"] + chance.choice(rows)["stderr"]
        lines = text.split("\n")
        chance.shuffle(lines)
        text = "\n".join(lines)
        for _ in range(4):
            at = chance.randrange(len(text) + 1)
            text = text[:at] + chance.choice(TORN) + text[at + 3 :]
        parse_probe(chance.choice(rows)["argv"], text, text[:200], chance.choice([0, 1, None, 72, 124]))


@pytest.mark.slow  # a second of one expression
def test_a_text_of_many_megabytes_is_read_in_bounded_time() -> None:
    for text in ("a" * 5_000_000, "Xcode 1\n" * 600_000, '{"_name" : "' * 400_000):
        parse_probe(["xcodebuild", "-version"], text, "", 0)
