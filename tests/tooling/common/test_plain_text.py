"""What strangers wrote reaches neither the terminal's controls nor GitHub's reader of commands."""

from __future__ import annotations

import io

import pytest
from mps_build import cli
from mps_build.common.console import Console
from mps_build.common.plain_text import fence_of, in_markdown, plain, shown
from rich.console import Console as RichConsole

STEERING = {
    "escape": "\x1b[2J",
    "title": "\x1b]0;owned\x07",
    "link": "\x1b]8;;https://evil\x1b\\x\x1b]8;;\x1b\\",
    "c1_csi": "\x9b2J",
    "c1_osc": "\x9d0;owned\x9c",
    "bidirectional": "\u202egnp.exe",
    "isolate": "\u2066x\u2069",
    "invisible": "a\u200bb",
    "line_separator": "a\u2028b",
    "carriage_return": "ok\rEVIL",
    "backspace": "ok\b\bEVIL",
    "nul": "a\0b",
    "surrogate": "a\ud800b",
}
COMMANDS = (
    "::set-env name=A::b",
    "  ::error::x",
    "\t::add-path::/evil",
    "ok\n::warning::x",
    "a ##[set-env name=A]b",
    "##[error]x",
)


def printed(way: str, text: str, *, terminal: bool) -> str:
    stream = io.StringIO()
    console = Console(rich=RichConsole(file=stream, force_terminal=terminal, width=200, highlight=False, no_color=True))
    if way == "table":
        console.table((text, "b"), [(text, text)], title=text)
    elif way == "step":
        with console.step(text):
            pass
    elif way == "progress":
        console.plain_interval_seconds = 0
        console.started(text)
        console.advanced(1, note=text)
        console.done(text)
    else:
        getattr(console, way)(text)
    return stream.getvalue()


@pytest.mark.parametrize("terminal", [False, True])
@pytest.mark.parametrize("way", ["print", "warn", "line", "table", "step", "progress"])
@pytest.mark.parametrize("kind", STEERING)
def test_no_steering_letter_reaches_the_terminal(kind: str, way: str, terminal: bool) -> None:
    out = printed(way, f"before {STEERING[kind]} after", terminal=terminal)
    out.encode()
    assert not [letter for letter in "\x9b\x9d\u202e\u2066\u200b\u2028\b\0\x07" if letter in out]
    assert STEERING[kind] not in out
    assert "\x1b[2J" not in out.replace("\x1b[2K", "") and "\x1b]" not in out


@pytest.mark.parametrize("way", ["print", "warn", "line", "table", "step", "progress"])
@pytest.mark.parametrize("text", COMMANDS)
def test_no_line_is_a_command_of_the_workflow(text: str, way: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GITHUB_ACTIONS", "true")
    lines = printed(way, text, terminal=False).splitlines()
    commands = [line for line in lines if line.strip().startswith("::") or "##[" in line]
    assert [line.split("::")[1] for line in commands] == (["group", "endgroup"] if way == "step" else [])


def test_errors_are_plain_too(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    evil = "".join(STEERING.values()) + "\n::error::x"
    assert cli.main(evil, []) == 2
    assert cli.main("audit_wheel", [evil]) == 2

    def fail(*_: object) -> None:
        raise RuntimeError(evil)

    monkeypatch.setattr("mps_build.commands.audit_wheel.run", fail)
    assert cli.main("audit_wheel", ["x.whl"]) == 1
    shown_text = "".join(capsys.readouterr())
    assert not [letter for letter in "\x1b\x9b\x9d\u202e\u2066\u200b\u2028\b\0\x07\r" if letter in shown_text]
    assert not [line for line in shown_text.splitlines() if line.strip().startswith("::")]


def test_plain_text_stays_as_it_is() -> None:
    text = "caf\u00e9 \u65e5\u672c at::mps std::x [12/34] \u201cx\u201d\n\tline #1 ## head"
    assert shown(text) == plain(text) == text


def test_markdown_is_closed_by_nobody() -> None:
    assert fence_of("```` x") == "`````"
    assert in_markdown("a\n# b </details> @org/team") == "a # b &lt;/details> &#64;org/team"
