"""What a person sees: headings, progress, tables, fold groups on CI. The only module that prints."""

from __future__ import annotations

import contextlib
import os
import re
import sys
import textwrap
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager

from rich.console import Console as RichConsole
from rich.live import Live
from rich.table import Column, Table
from rich.text import Text

from .plain_text import disarmed, plain, shown
from .standard_streams import OutputLost
from .workspace import in_checkout

_FRAMES = "⠋⠙⠹⠸⠼⠴⠦⠧⠇⠏"
_SESSION = re.compile(r"\bnox -s (?:dev -- (\w+)|(\w+)( -- ?)?)")


def as_called(text: str, *, checkout: bool | None = None) -> str:
    """Return a text whose commands are what this user types: sessions of nox in a clone, commands elsewhere.

    >>> as_called("see `nox -s doctor -- v2.6.0`", checkout=False)
    'see `mps-build doctor v2.6.0`'
    >>> as_called("`nox -s dev -- lock v2.6.0` writes it", checkout=False)
    '`mps-build lock v2.6.0` writes it'
    """
    if in_checkout() if checkout is None else checkout:
        return text
    return _SESSION.sub(lambda match: f"mps-build {match[1] or match[2]}" + (" " if match[3] else ""), text)


class Console:
    """Prints to the terminal; is the `Reporter` that steps report progress to.

    On a terminal, work is one line rewritten, which turns and counts the time by itself; elsewhere it is a plain line
    at most every ten seconds of progress, and every minute of silence, so that a CI log stays readable.
    """

    plain_interval_seconds = 10.0
    silent_interval_seconds = 60.0

    def __init__(self, *, rich: RichConsole | None = None, to_stderr: bool = False, quiet: bool = False) -> None:
        # A log has no edge: nothing in it is cut or wrapped.
        width = None if sys.stdout.isatty() else 200
        self._rich = rich or RichConsole(
            highlight=False, width=width, soft_wrap=width is not None, stderr=to_stderr, quiet=quiet
        )
        self._live: Live | None = None
        self._title, self._unit, self._total = "", "steps", None  # type: tuple[str, str, int | None]
        self._text = ""
        self._beat: _Beat | None = None
        self._began = self._last_plain = 0.0
        self.timings: list[tuple[str, float]] = []

    def print(self, text: str = "", *, style: str | None = None) -> None:
        """Print a line; controls and invisible characters in it are shown, not sent."""
        self._show(shown(as_called(text)), style=style)

    def verbatim(self, text: str) -> None:
        """Print lines that may be copied: as they are, but for controls; a terminal folds them without a break."""
        self._rich.print(Text(shown(text)), soft_wrap=True)

    def _show(self, text: str, *, style: str | None) -> None:
        if not self._rich.is_terminal:
            self._rich.print(Text(text, style=style or ""), soft_wrap=True)
            return
        for line in text.split("\n"):
            # A command stays one line, to be copied whole; the terminal folds it.
            command = bool(_SESSION.search(line)) or "mps-build " in line
            folded = line if command else disarmed(hanging(line, self._rich.width))
            self._rich.print(Text(folded, style=style or ""), soft_wrap=True)

    def warn(self, text: str) -> None:
        """Print a warning in yellow."""
        self._show(f"warning: {shown(as_called(text))}", style="yellow")

    @contextmanager
    def step(self, title: str) -> Iterator[None]:
        """Open a heading, and on GitHub a fold group; its duration joins the closing table."""
        on_github = bool(os.environ.get("GITHUB_ACTIONS"))
        heading = shown(title).replace("\n", " ")
        if on_github:
            self.workflow_command(f"::group::{heading}")
        else:
            self._show(f"==> {heading}", style="bold")
        began = time.monotonic()
        try:
            yield
        finally:
            self._close_live()
            if on_github:
                self.workflow_command("::endgroup::")
        self.timings.append((title, time.monotonic() - began))

    def workflow_command(self, text: str) -> None:
        """Print a line that GitHub is meant to read as a command; whoever calls this has escaped what it holds."""
        allowed = getattr(self._rich.file, "allowing_commands", contextlib.nullcontext)
        with allowed():
            self._rich.print(Text(plain(text).replace("\n", " ")), soft_wrap=True)

    def table(self, columns: Sequence[str], rows: Sequence[Sequence[str]], *, title: str | None = None) -> None:
        """Print a table; long cells are folded, never cut, so that they can be copied."""
        # Folded, never cut: a name that ends in an ellipsis cannot be copied.
        heads = (Column(Text(shown(name)), overflow="fold") for name in columns)
        heading = Text(shown(title)) if title else None
        table = Table(*heads, title=heading, title_justify="left", box=None, pad_edge=False, padding=(0, 2, 0, 0))
        for row in rows:
            table.add_row(*(Text(shown(as_called(cell))) for cell in row))
        if self._rich.is_terminal:
            self._rich.print(table)
            return
        with self._rich.capture() as drawn:
            self._rich.print(table)
        # A folded cell goes on at the start of a line.
        self._rich.print(Text(disarmed(drawn.get())), soft_wrap=True, end="")

    # The Reporter protocol of process.py.

    def started(self, title: str, *, total: int | None = None, unit: str = "steps") -> None:
        """Begin to show a long step.

        Args:
            total: how many units it has, if that is known.
            unit: what is counted, such as "steps" or "bytes".
        """
        self._close_live()
        title = shown(title)
        self._title, self._unit, self._total = title, unit, total
        self._began = time.monotonic()
        self._last_plain = self._began
        self._text = title
        if self._rich.is_terminal:
            self._live = Live(get_renderable=self._view, console=self._rich, refresh_per_second=8, transient=True)
            self._live.start()
        else:
            self._beat = _Beat(self.silent_interval_seconds, self._say_still)

    def advanced(self, done: int, *, total: int | None = None, note: str = "", left: float | None = None) -> None:
        """Show the progress of the step that was started.

        Args:
            done: units so far, not since the last call.
            total: a better figure than the first one.
            left: seconds to the end, where that is known better than by the rate so far.
        """
        self._total = total if total is not None else self._total
        seconds = time.monotonic() - self._began
        text = progress_line(self._title, done, self._total, self._unit, seconds, shown(note), left=left)
        self._text = text
        if self._live is None and time.monotonic() - self._last_plain >= self.plain_interval_seconds:
            self._last_plain = time.monotonic()
            self.print(text)

    def line(self, text: str) -> None:
        """Print a detail of the current step, dimmed and indented."""
        self._show(shown(f"    {as_called(text)}"), style="dim")

    def done(self, note: str = "") -> None:
        """End the step that was started; `note` is printed below it."""
        self._close_live()
        if note:
            self.print(f"    {note}")

    def _close_live(self) -> None:
        if self._live:
            self._live.stop()
            self._live = None
        if self._beat:
            beat, self._beat = self._beat, None
            beat.stop()

    def _view(self) -> Text:
        """Return the line of work as it is now: what it is, how far, how long."""
        seconds = time.monotonic() - self._began
        frame = _FRAMES[int(seconds * 8) % len(_FRAMES)]
        return Text(f"{frame} {self._text}  {human_seconds(seconds)}", no_wrap=True, overflow="ellipsis")

    def _say_still(self) -> None:
        """Say that a long work goes on, where nothing else was said for a while."""
        now = time.monotonic()
        if now - self._last_plain >= self.silent_interval_seconds * 0.9:
            self._last_plain = now
            self.print(f"    {self._text}  {human_seconds(now - self._began)}")


class _Beat:
    """Calls something at intervals, in a thread of its own, until it is stopped."""

    def __init__(self, seconds: float, call: Callable[[], None]) -> None:
        self._ended = threading.Event()
        self._lost: OutputLost | None = None
        self._thread = threading.Thread(target=self._run, args=(seconds, call), daemon=True)
        self._thread.start()

    def _run(self, seconds: float, call: Callable[[], None]) -> None:
        while self._lost is None and not self._ended.wait(seconds):
            try:
                call()
            except OutputLost as lost:
                self._lost = lost

    def stop(self) -> None:
        """End it, and raise here what it met: a stream hears once that it takes no more, and not to a thread."""
        self._ended.set()
        self._thread.join()
        if self._lost is not None:
            raise self._lost


def hanging(line: str, width: int) -> str:
    """Return a line folded at `width`, what follows under the beginning of its own text: behind the last wide gap.

    >>> hanging("STOP Xcode   none: it runs on macOS alone", 30)
    'STOP Xcode   none: it runs on\\n             macOS alone'
    """
    if len(line) <= width:
        return line
    gaps = [match.end() for match in re.finditer(r" {2,}|^ +", line) if match.end() <= width // 2]
    indent = " " * (gaps[-1] if gaps else 0)
    head, text = line[: len(indent)], line[len(indent) :]
    folded = textwrap.wrap(text, max(width - len(indent), 20), break_on_hyphens=False)
    return head + f"\n{indent}".join(folded)


def progress_line(
    title: str, done: int, total: int | None, unit: str, seconds: float, note: str = "", *, left: float | None = None
) -> str:
    """Return one line of progress: done/total, rate, and the time left at that rate.

    >>> progress_line("Compile", 50, 200, "steps", 100.0)
    'Compile  50/200 steps  0.5/s  5m00s left'
    >>> progress_line("Fetch", 3_000_000, None, "bytes", 1.0)
    'Fetch  3.0 MB  3.0 MB/s'
    """
    rate = done / seconds if seconds > 0 else 0.0
    if unit == "bytes":
        amount = human_bytes(done) + (f" of {human_bytes(total)}" if total else "")
        parts = [title, amount, f"{human_bytes(rate)}/s"]
    else:
        parts = [title, f"{done}/{total} {unit}" if total else f"{done} {unit}", f"{rate:.1f}/s"]
    if left is not None:
        parts.append(f"{human_seconds(left)} left")
    elif total and rate > 0 and done * 100 >= total:  # less than a hundredth says nothing
        parts.append(f"{human_seconds((total - done) / rate)} left")
    return "  ".join([*parts, note] if note else parts)


def human_bytes(count: float) -> str:
    """Return a size as a person reads it, in powers of 1000.

    >>> human_bytes(139_000_000)
    '139.0 MB'
    """
    for unit in ("B", "kB", "MB"):
        if count < 1000:
            return f"{count:.0f} {unit}" if unit == "B" else f"{count:.1f} {unit}"
        count /= 1000
    return f"{count:.1f} GB"


def human_seconds(seconds: float) -> str:
    """Return a duration as a person reads it.

    >>> human_seconds(4.25), human_seconds(125), human_seconds(7322)
    ('4.2s', '2m05s', '2h02m')
    """
    if seconds < 60:
        return f"{seconds:.1f}s"
    minutes, rest = divmod(round(seconds), 60)
    return f"{minutes}m{rest:02d}s" if minutes < 60 else f"{minutes // 60}h{minutes % 60:02d}m"
