"""Logs of our own making, for every row, and innocent ones for which no cause may be named."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from mps_build.common import strict_yaml
from mps_build.host.triage import explain
from mps_build.host.triage.rules import load_catalogue
from packaging.version import Version
from rows import for_each

RECORDED = Path(__file__).parents[2] / "recorded"
ROWS: list[dict[str, Any]] = strict_yaml.unchecked((RECORDED / "triage_variants.yaml").read_text("utf-8"))
NAMES = [f"{row['cause'] or row['what']}-{number}" for number, row in enumerate(ROWS)]


def _text(cause: str) -> str:
    return str(next(row["text"] for row in ROWS if row["cause"] == cause))


@for_each(zip(NAMES, ROWS, strict=True), name=lambda row: str(row[0]))
def test_a_log_of_our_own_is_explained(_: str, row: dict[str, Any]) -> None:
    for text in (row["text"], "\n".join(f"2026-03-01T10:00:00.0000000Z {line}" for line in row["text"].split("\n"))):
        found = explain(text)
        assert found.cause == row["cause"]
        assert (found.first_error is None) is (row["shown"] is None)
        assert found.first_error is None or row["shown"] in found.first_error.text


def test_every_row_of_the_catalogue_has_a_log_or_a_specimen() -> None:
    specimens = strict_yaml.unchecked((RECORDED / "specimens" / "build_logs.yaml").read_text("utf-8"))
    collected = strict_yaml.unchecked((RECORDED / "triage_collected.yaml").read_text("utf-8"))
    points = strict_yaml.unchecked((RECORDED / "triage_points.yaml").read_text("utf-8"))
    xcode = strict_yaml.unchecked((RECORDED / "specimens" / "xcode.yaml").read_text("utf-8"))
    tried = {row["cause"] for row in (*ROWS, *specimens, *collected, *points)}
    errors = {(row.get("fact") or {}).get("error") for row in xcode}
    # B10 needs the release, B19 and N6 are tried below; N52, N54 and N67 are too.
    causes = load_catalogue().causes
    ids = {cause.id for cause in causes}

    tried |= {cause.id for cause in causes if errors & {*cause.tool_errors}}
    assert ids - tried <= {"B10", "B19", "B58", "N52", "N54", "N67"}
    assert len([name for name in ids if name.startswith("B")]) >= 40


@pytest.mark.parametrize(
    ("cause", "release", "text"),
    [
        ("B10", "2.0.1", "c10/util/x.h:9:3: error: implicit instantiation of undefined template 'std::array<int, 3>'"),
        ("N62", None, "c10/util/x.h:9:3: error: implicit instantiation of undefined template 'std::array<int, 3>'"),
        ("B6", "2.1.2", _text("B6")),
        (None, "2.4.1", _text("B6")),
        ("B45", "2.15.0", "python: can't open file '/x/pt/setup.py': [Errno 2] No such file or directory"),
        (None, "2.6.0", "python: can't open file '/x/pt/setup.py': [Errno 2] No such file or directory"),
        (None, None, "python: can't open file '/x/pt/setup.py': [Errno 2] No such file or directory"),
        ("B1", "2.6.0.dev20250101", _text("B2").replace("ittapi", "protobuf/cmake")),
    ],
)
def test_the_release_decides_where_the_words_do_not(cause: str | None, release: str | None, text: str) -> None:
    assert explain(text, release=Version(release) if release else None).cause == cause


@pytest.mark.parametrize(
    ("cause", "text"),
    [
        (
            "B19",
            "$ xcodebuild -downloadComponent MetalToolchain\nMetalToolchain is already installed.\nFAILED: A_31.air\n"
            "error: cannot execute tool 'metal' due to missing Metal Toolchain; use: xcodebuild -downloadComponent",
        ),
        (
            "B58",
            "/opt/bin/sccache clang++ -include-pch cmake_pch.hxx.pch\nld: error: a.cpp.o: file not recognized\n",
        ),
        (
            "N54",
            "+ unzip -p dist/torch-2.1.0-cp311-none-macosx_11_0_arm64.whl WHEEL\nTag: cp311-cp311-macosx_11_0_x86_64\n"
            "error: the tag is wrong",
        ),
        ("N6", "[1/9] Linking CXX shared library a\n##[error]The operation was canceled."),
    ],
)
def test_a_cause_that_needs_two_signs_is_reported_by_both(cause: str, text: str) -> None:
    assert explain(text).cause == cause
    assert explain(text.split("\n", maxsplit=1)[0]).cause is None


def test_macos_13_under_a_newer_torch_is_reported_by_release_and_system() -> None:
    text = "ProductVersion: 13.7.4\nRuntimeError: The MPS backend is supported on MacOS 13.0+. Current OS"

    assert explain(text, release=Version("2.10.0.dev20251012")).cause == "N67"
    assert explain(text, release=Version("2.6.0")).cause is None
    assert explain("Successfully installed torch-2.9.1\n" + text).cause == "N67"


def test_a_broken_tree_is_not_explained_by_what_it_resembles() -> None:
    text = _text("B13")

    assert explain(text).cause == "B13"
    assert explain("a.mm:9:1: error: version control conflict marker in file\n" + text).cause is None


def test_mps_that_came_out_off_is_no_cause_of_another_failure() -> None:
    off = _text("B16")

    assert explain(off + "FAILED: a.o\na.cpp:1:2: error: expected ';'\n").cause is None
    assert explain(off + "FAILED: a.o\nclang: error: unable to execute command: Killed: 9\n").cause == "B59"
    assert explain(off + "Successfully built torch\n").cause is None
    assert (
        explain(off + "Successfully built torch\nAssertionError: Torch not compiled with MPS enabled\n").cause == "B16"
    )
