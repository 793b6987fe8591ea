"""Every specimen of what Apple's tools print is read right, also mangled as texts are on their way to us."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import pytest
from macs import faults_of, lies_of, specimens
from mps_build.host.macos.known_tool_errors import BY_ID
from mps_build.host.macos.parsers import parse_probe
from rows import for_each

ALL = specimens("xcode", "system")
FOREIGN = "Last login: Tue Nov 3 09:12:44 on ttys001\n+ set -e\nwarning: using cached settings of 26.1 (17B55)\n"
FOREIGN_PATHS = "/etc/profile: line 3: nvm: command not found\nnote: job 4 of 12 started\nbuild 17 (attempt 2)\n"

# What is left of these is a whole answer of its own; nothing in it tells that more was there.
WHOLE_WITHOUT_THE_REST = {
    ("proc_translated-one", "known"),
    ("proc_translated-one", "rosetta"),
    ("pmset-thermlog-intel-54", "cpu_speed_limit"),
    ("pmset-thermlog-intel-54", "throttled"),
    ("spdisplays-m3max-40-cores-two-displays", "displays"),
    ("spdisplays-m5-metal4-with-display", "displays"),
    ("spdisplays-mbp15-uhd630-and-radeon-560x", "displays"),
    ("spdisplays-2011-no-metal-line", "displays"),
}
# No text at all is the answer here; anything before it is not the answer.
EMPTY_IS_THE_ANSWER = {"spdisplays-nothing-at-all"}


def _read(
    specimen: dict[str, Any], change: Callable[[str], str] = str, streams: tuple[str, ...] = ("stdout", "stderr")
) -> Any:
    texts = {key: change(specimen[key]) if key in streams else specimen[key] for key in ("stdout", "stderr")}
    return parse_probe(specimen["argv"], texts["stdout"], texts["stderr"], specimen["exit"], specimen.get("env"))


def _on_each_line(begin: str, end: str) -> Callable[[str], str]:
    return lambda text: "\n".join(f"{begin}{line}{end}" for line in text.split("\n"))


@for_each(ALL, name=lambda specimen: str(specimen["id"]))
def test_specimen_is_read_right(specimen: dict[str, Any]) -> None:
    assert faults_of(_read(specimen), specimen) == []


@pytest.mark.parametrize(
    "change",
    [
        pytest.param(lambda text: text.replace("\r\n", "\n").replace("\n", "\r\n"), id="crlf"),
        pytest.param(_on_each_line("\x1b[1;31m", "\x1b[0m"), id="colour"),
        pytest.param(_on_each_line("\x1b[0K\x1b[32m", "\x1b[39;49m\x1b[m"), id="colour-and-erase"),
        pytest.param(_on_each_line("", "  \t "), id="trailing-blanks"),
        pytest.param(lambda text: text.rstrip("\n"), id="no-last-newline"),
        pytest.param(lambda text: FOREIGN + text, id="foreign-lines-before"),
        pytest.param(lambda text: FOREIGN_PATHS + text, id="foreign-paths-before"),
    ],
)
def test_specimens_are_read_right_however_they_came_here(change: Callable[[str], str]) -> None:
    wrong = {}
    for specimen in ALL:
        for streams in (("stdout",), ("stderr",), ("stdout", "stderr")):
            answer = _read(specimen, change, streams)
            if specimen["id"] in EMPTY_IS_THE_ANSWER and answer == {"not_understood": True}:
                continue
            if faults := faults_of(answer, specimen):
                wrong[specimen["id"], streams] = faults

    assert wrong == {}


def _cuts(specimen: dict[str, Any]) -> Iterator[Any]:
    for streams in (("stdout",), ("stderr",), ("stdout", "stderr")):
        for count in range(max(len(specimen[stream].splitlines()) for stream in streams) + 1):
            for end in ("", "\n"):
                yield _read(specimen, partial(_first_lines, count=count, end=end), streams)


def _first_lines(text: str, *, count: int, end: str) -> str:
    return "\n".join(text.splitlines()[:count]) + (end if count else "")


def _first_part(text: str, *, share: float) -> str:
    return text[: int(len(text) * share)]


def test_specimens_cut_after_any_line_say_less_and_never_else() -> None:
    lies = {
        (specimen["id"], lie.split(" is ", 1)[0])
        for specimen in ALL
        for answer in _cuts(specimen)
        for lie in lies_of(answer, specimen)
    }

    assert lies - WHOLE_WITHOUT_THE_REST == set()


def test_texts_cut_inside_a_line_crash_no_parser() -> None:
    for specimen in ALL:
        for share in (0.3, 0.55, 0.8, 0.97):
            _read(specimen, partial(_first_part, share=share))


def test_the_judge_sees_what_is_wrong_what_is_missing_and_what_may_be_left_out() -> None:
    specimen = {"fact": {"version": "16.1", "build": "16B40", "noise": ["x"]}, "acceptable_also": [{"version": None}]}

    assert faults_of({"version": "16.1", "build": "16B40"}, specimen) == []
    assert faults_of({}, specimen) == []
    assert faults_of({"version": "16.2", "build": "16B40"}, specimen) != []
    assert faults_of({"version": "16.1"}, specimen) != []
    assert faults_of({"not_understood": True}, {"fact": {"error": "no_receipt"}}) != []
    assert faults_of({"error": "no_receipt"}, {"fact": {"error": "no_receipt", "package": "a"}}) == []
    assert lies_of({"version": "16.2"}, specimen) != []


def test_every_error_of_the_specimens_is_a_situation_with_the_command_that_fixes_it() -> None:
    errors = {specimen["fact"]["error"] for specimen in ALL if "error" in specimen["fact"]}
    kinds = {
        specimen["id"]: (specimen.get("mend"), BY_ID[specimen["fact"]["error"]].fix)  # codespell:ignore mend
        for specimen in ALL
        if "error" in specimen["fact"]
    }

    assert errors <= BY_ID.keys()
    assert [name for name, (theirs, ours) in kinds.items() if (theirs is None) != (ours is None)] == []
    assert [name for name in errors if not BY_ID[name].link.startswith("https://") or not BY_ID[name].means] == []


@pytest.mark.parametrize(
    ("argv", "stdout", "exit"),
    [
        (["xcodebuild", "-version"], "Xcode 26.4\n", 65),
        (["xcrun", "-f", "metal"], "/Applications/Xcode.app/Contents/Developer/usr/bin/metal\n", 72),
        (["sh", "-c", "xcrun -f metal && xcrun metal --version"], "/Applications/Xcode.app/usr/bin/metal\n", 0),
        (["xcodebuild", "-checkFirstLaunchStatus"], "", 1),
        (["sw_vers"], "", 0),
        (["sysctl", "-n", "machdep.cpu.brand_string"], "a machine\n", 0),
        (["no-such-tool"], "hello\n", 0),
        ([], "", None),
    ],
)
def test_an_answer_that_proves_nothing_is_not_understood(argv: list[str], stdout: str, exit: int | None) -> None:
    assert parse_probe(argv, stdout, "", exit) == {"not_understood": True}
