"""What strangers wrote reaches neither the terminal's controls nor GitHub's reader of commands."""

from __future__ import annotations

import io
import json
from itertools import product
from pathlib import Path

import pytest
from documents import rendered
from mps_build import cli
from mps_build.commands.check_mm import annotation
from mps_build.common.console import Console
from mps_build.common.page import whole_page
from mps_build.common.plain_text import (
    Markdown,
    fence_of,
    html_link,
    in_code,
    in_markdown,
    markdown_link,
    markdown_table,
    plain,
    shown,
    with_code,
)
from mps_build.common.standard_streams import guarded_streams
from mps_build.wheel_build.mm.diagnostics import Diagnostic
from rich.console import Console as RichConsole
from rows import for_each

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


@for_each(product(STEERING, ["print", "warn", "line", "table", "step", "progress"], [False, True]))
def test_no_steering_character_reaches_the_terminal(kind: str, way: str, terminal: bool) -> None:
    out = printed(way, f"before {STEERING[kind]} after", terminal=terminal)
    out.encode()
    assert not [character for character in "\x9b\x9d\u202e\u2066\u200b\u2028\b\0\x07" if character in out]
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
    assert not [character for character in "\x1b\x9b\x9d\u202e\u2066\u200b\u2028\b\0\x07\r" if character in shown_text]
    assert not [line for line in shown_text.splitlines() if line.strip().startswith("::")]


def test_plain_text_stays_as_it_is() -> None:
    text = "caf\u00e9 \u65e5\u672c at::mps std::x [12/34] \u201cx\u201d\n\tline #1 ## head"
    assert shown(text) == plain(text) == text


def test_markdown_is_closed_by_nobody() -> None:
    assert fence_of("```` x") == "`````"
    assert in_markdown("a\n# b </details> @org/team") == "a # b &lt;/details> @&#8203;org/team"


@pytest.mark.parametrize(
    ("way", "terminal"),
    [
        ("print", False),
        ("print", True),
        ("line", False),
        ("line", True),
        ("warn", False),
        ("warn", True),
        ("table", False),
    ],
)
def test_no_fold_starts_a_command(way: str, terminal: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    """A name may be as long as the line is wide, so that what follows it begins the next line."""
    monkeypatch.setenv("GITHUB_ACTIONS", "true")
    for length in range(170, 202):
        for text in (f"{'a' * length}::error::x", f"{'a' * length} ::error::x", f"{'a b ' * (length // 4)}::error::x"):
            lines = printed(way, text, terminal=terminal).splitlines()
            assert not [line for line in lines if line.strip().startswith("::")], length


def test_what_goes_around_the_console_is_no_command_either(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("GITHUB_ACTIONS", "true")
    with guarded_streams():
        print("a ", end="")
        print("::error::x")
        print("  ::error::x\n##[error]x")
        RichConsole(force_terminal=True, width=40, color_system=None).print("a" * 40 + "::error::x")
        console = Console()
        console.workflow_command("::notice::meant\n::error::x")
        console.print("::error::x")
    said = capsys.readouterr().out
    assert said.splitlines()[0] == "a ::error::x"
    assert [line for line in said.splitlines() if line.strip().startswith("::")] == ["::notice::meant ::error::x"]
    assert "##[" not in said


def test_an_annotation_is_one_command_whatever_its_file_is_called(capsys: pytest.CaptureFixture[str]) -> None:
    evil = Diagnostic(file="a,b:c\n::error::x\x1b[2J", line=1, column=2, severity="error", text="50%\r\n::error::y")
    line = annotation(evil)
    assert "\n" not in line and "\x1b" not in line
    assert line.startswith("::error file=a%2Cb%3Ac%0A%3A%3Aerror%3A%3Ax\\x1b[2J,line=1,col=2::50%25")


def test_no_cell_of_a_table_ends_its_row() -> None:
    (markdown,) = markdown_table((), [(Markdown("x | y\n| z \x1b[2J \\| \\\\|"),)])[2:]
    assert markdown == "| x \\| y \\| z \\x1b[2J \\| \\\\\\| |"
    for text in ("x | y", "x \\| y", "x \\\\| y", "\\"):
        rows = rendered("\n".join(markdown_table(("a", "b"), [(text, "end")])))
        assert f"<td>{text}</td>\n<td>end</td>" in rows


@pytest.mark.parametrize(
    ("text", "shown_text"),
    [
        ("# a", "# a"),
        ("> a", "&gt; a"),
        ("- a", "- a"),
        ("+ a", "+ a"),
        ("12. a", "12. a"),
        ("---", "---"),
        ("===", "==="),
        ("**a** __b__ ~~c~~ *d*", "**a** __b__ ~~c~~ *d*"),
        ("![x](https://example.org/a.png) [a](javascript:b)", "![x](https://example.org/a.png) [a](javascript:b)"),
        ("<img src=x> &lt; &amp;", "&lt;img src=x&gt; &amp;lt; &amp;amp;"),
        ("at::mps::_foo_bar -3.5 a_b", "at::mps::_foo_bar -3.5 a_b"),
    ],
)
def test_a_text_in_markdown_is_read_as_that_text(text: str, shown_text: str) -> None:
    assert rendered(in_markdown(text)) == f"<p>{shown_text}</p>\n"
    assert rendered(with_code(text)) == f"<p>{shown_text}</p>\n"


def test_a_mention_calls_nobody_and_an_address_stays() -> None:
    """GitHub looks for mentions in what is rendered, so an escape of the sign alone is none."""
    assert "@all" not in rendered(in_markdown("(@all) @org/team"))
    assert in_markdown("a.b@example.org @ 3") == "a.b@example.org @ 3"


def test_a_link_leads_to_the_web_or_nowhere() -> None:
    assert markdown_link("a]", "https://example.org/)<b> c") == r"[a\]](https://example.org/%29%3Cb%3E%20c)"
    assert markdown_link("a", "javascript:b") == html_link("javascript:b", "a") == "a"
    assert html_link('https://a/"x', "b") == '<a href="https://a/&quot;x">b</a>'
    assert in_code("a`b\nc") == "`a'b c`"


def test_a_page_shows_steering_characters_and_sends_none() -> None:
    page = whole_page("a\x1b[2J<b>", "".join(STEERING.values()))
    assert not [character for character in "\x1b\x9b\x9d\u202e\u2066\u200b\u2028\b\0\x07\r" if character in page]
    page.encode()


def test_json_on_the_screen_is_faithful_and_no_command(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("GITHUB_ACTIONS", "true")
    name = "##[error]x\x1b[2J\n::error::y.json"

    cli.main("compare", [name, name, "--json", "-"])

    out = capsys.readouterr().out
    assert name in json.loads(out)["error"]
    assert "##[" not in out and "\x1b" not in out


def test_a_triaged_log_reaches_no_terminal_as_it_is(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    log = tmp_path / "build.log"
    log.write_text(f"::error::x\nerror: {''.join(STEERING.values())[:-3]}\n##[error]y\n", encoding="utf-8")

    assert cli.main("triage", [str(log)]) == 0

    said = "".join(capsys.readouterr())
    assert not [character for character in "\x1b\x9b\x9d\u202e\u2066\u200b\u2028\b\0\x07\r" if character in said]
