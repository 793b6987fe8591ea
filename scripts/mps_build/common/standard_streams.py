"""The process's own three streams: closed, full, cut off or not UTF-8, each has one meaning and none is a bug.

A stream that takes no more is distinguished from every other broken pipe or full disk here, where it is written to;
further up all of them are an OSError.
"""

from __future__ import annotations

import contextlib
import errno
import io
import os
import sys
from collections.abc import Iterator
from typing import Any

from .plain_text import disarmed

# As a shell gives the status of a program that SIGPIPE ended: what `yes | head -1` makes of `yes`.
CUT_OFF = 128 + 13


class OutputLost(SystemExit):
    """Standard output takes no more; a way to end, so that no work takes it for a failure of its own."""

    def __init__(self, error: OSError) -> None:
        super().__init__(CUT_OFF if error.errno == errno.EPIPE else 2)
        self.error = error


class GuardedStream:
    """A stream in front of the real one (None: it is closed): characters it cannot encode are escaped.

    What the real one refuses is raised once as OutputLost, and then dropped; of standard error it is dropped at once,
    because there is nowhere left to say it.
    """

    def __init__(self, stream: Any, *, number: int) -> None:
        self._stream, self._number, self._lost = stream, number, False
        # GitHub reads commands out of what a step prints, whoever printed it.
        self._disarms, self._starts_line = bool(os.environ.get("GITHUB_ACTIONS")), True
        # What a workflow prints, others read.
        self._scrubs = self._disarms or bool(os.environ.get("CI"))

    def __getattr__(self, name: str) -> Any:
        return getattr(self._stream, name)

    @property
    def encoding(self) -> str:
        """What the real one writes; a closed one writes nothing."""
        return getattr(self._stream, "encoding", None) or "utf-8"

    def isatty(self) -> bool:
        """Say whether it is a terminal."""
        return self._stream is not None and not self._lost and bool(self._stream.isatty())

    def write(self, text: str) -> int:
        """Write a text; on GitHub nothing in it is a command, unless commands are allowed."""
        if self._lost or not text:
            return len(text)
        if self._scrubs:
            from .scrubbing.scrubber import without_secrets

            text = without_secrets(text)
        if self._disarms:
            text = disarmed(text) if self._starts_line else disarmed(f"x{text}")[1:]
            self._starts_line = text.endswith("\n")
        try:
            if self._stream is None:
                raise OSError(errno.EBADF, os.strerror(errno.EBADF))
            try:
                self._stream.write(text)
            except UnicodeEncodeError:
                self._stream.write(text.encode(self.encoding, "backslashreplace").decode(self.encoding))
        except OSError as error:
            self._lose(error)
        return len(text)

    @contextlib.contextmanager
    def allowing_commands(self) -> Iterator[None]:
        """Let what is written inside the block be a command."""
        before, self._disarms = self._disarms, False
        try:
            yield
        finally:
            self._disarms, self._starts_line = before, True

    def flush(self) -> None:
        """Hand on what was written."""
        if self._lost or self._stream is None:
            return
        try:
            self._stream.flush()
        except OSError as error:
            self._lose(error)

    def _lose(self, error: OSError) -> None:
        self._lost = True
        # What Python still holds of it, and writes when it ends, must go somewhere: else its status is 120.
        with contextlib.suppress(OSError, ValueError, AttributeError):
            null = os.open(os.devnull, os.O_WRONLY)
            os.dup2(null, self._stream.fileno())
            os.close(null)
        if self._number == 1:
            raise OutputLost(error)


@contextlib.contextmanager
def guarded_streams() -> Iterator[None]:
    """Guard standard output and standard error inside the block, and let no file that is opened get their numbers."""
    if isinstance(sys.stdout, GuardedStream):
        yield
        return
    _occupy_closed()
    before = sys.stdin, sys.stdout, sys.stderr
    if sys.stdin is None:
        sys.stdin = io.TextIOWrapper(io.BytesIO())
    sys.stdout, sys.stderr = GuardedStream(sys.stdout, number=1), GuardedStream(sys.stderr, number=2)
    try:
        yield
    finally:
        sys.stdin, sys.stdout, sys.stderr = before


def _occupy_closed() -> None:
    """Put the null device where a standard descriptor is closed: the next file opened would be taken for it."""
    for number in (0, 1, 2):
        try:
            os.fstat(number)
        except OSError:
            with contextlib.suppress(OSError):
                opened = os.open(os.devnull, os.O_RDWR)
                if opened == number:
                    os.set_inheritable(number, True)
                else:
                    os.close(opened)
