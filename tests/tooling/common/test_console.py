"""What a person sees: tables, and the life of a console whose end is closed, full or slow."""

from __future__ import annotations

import errno
import io
import re
import threading
import time
from pathlib import Path
from typing import IO, cast

import pytest
from mps_build.common.console import Console
from mps_build.common.receipts import Ledger, StepResult
from mps_build.common.standard_streams import GuardedStream, OutputLost
from mps_build.wheel_build.pipeline import shown_step
from rich.console import Console as RichConsole


def test_a_long_name_is_there_whole_in_80_columns() -> None:
    name = "torch-2.15.0+mps.gd0f2af8.patched-cp312-cp312-macosx_14_0_arm64.whl"
    digest = "0123456789abcdef" * 4
    out = io.StringIO()

    Console(rich=RichConsole(file=out, width=80, force_terminal=True, color_system=None)).table(
        ("wheel", "size", "sha256"), [(name, "138.6 MB", digest)]
    )

    assert "…" not in out.getvalue()
    columns = [line.split() for line in out.getvalue().splitlines()[1:]]
    assert name in "".join(line[0] for line in columns if line)


def _console(*, terminal: bool) -> tuple[Console, io.StringIO]:
    out = io.StringIO()
    return Console(rich=RichConsole(file=out, force_terminal=terminal, width=100, color_system=None)), out


def test_on_a_terminal_the_line_turns_and_counts_without_any_progress() -> None:
    console, out = _console(terminal=True)

    console.started("Create the build environment")
    time.sleep(0.6)
    console.done()

    seen = re.findall(r"(.) Create the build environment  (\d\.\ds)", out.getvalue())
    assert len({frame for frame, _ in seen}) > 1, "it turns"
    assert len({seconds for _, seconds in seen}) > 1, "it counts"


def test_progress_is_shown_with_the_time() -> None:
    console, out = _console(terminal=True)

    console.started("Fetch", unit="bytes")
    console.advanced(3_000_000, total=6_000_000)
    time.sleep(0.3)
    console.done()

    assert re.search(r"Fetch  3\.0 MB of 6\.0 MB .*\d\.\ds", out.getvalue())


def test_a_log_gets_a_line_for_each_stretch_of_silence(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Console, "silent_interval_seconds", 0.2)
    console, out = _console(terminal=False)

    console.started("zig's libc++")
    time.sleep(0.7)
    console.done()
    said = out.getvalue()
    time.sleep(0.4)

    assert 2 <= said.count("zig's libc++") <= 4
    assert out.getvalue() == said, "no word after the end"


def test_a_word_that_a_log_no_longer_takes_ends_the_work_that_is_shown(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    class Full(io.StringIO):
        def write(self, _text: str) -> int:
            raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(Console, "silent_interval_seconds", 0.05)
    guarded = cast(IO[str], GuardedStream(Full(), number=1))
    console = Console(rich=RichConsole(file=guarded))

    console.started("Compile")
    time.sleep(0.3)

    with pytest.raises(OutputLost):
        console.done()
    assert capsys.readouterr().err == ""
    console.done()


def test_nothing_is_left_running() -> None:
    before = threading.active_count()
    console, _ = _console(terminal=False)

    with pytest.raises(KeyError), console.step("Work"):
        console.started("one")
        console.started("two")
        raise KeyError

    assert threading.active_count() == before


def test_a_step_that_was_spared_says_so(tmp_path: Path) -> None:
    console, out = _console(terminal=False)

    for _ in range(2):
        ledger = Ledger(tmp_path)
        with shown_step(console, ledger, "Environment"):
            ledger.run("one", version=1, inputs={}, action=StepResult)
        with shown_step(console, ledger, "Nothing"):
            pass

    assert out.getvalue().split("\n")[:6] == [
        "==> Environment",
        "==> Nothing",
        "==> Environment",
        "    up to date",
        "==> Nothing",
        "",
    ]
