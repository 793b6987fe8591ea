"""Which line of a failed log a person should see first, and whether the log failed at all."""

from __future__ import annotations

from collections.abc import Sequence
from enum import Enum, auto
from functools import lru_cache

from mps_build.common.logs.text import Line, squeeze

from . import words
from .log import is_quoted

_CMAKE_BODY_LINES = 12
# How far a frame (`make: *** [x] Error 1`) may stand from the message that it concludes.
_NEAR = 12
_OF_A_STEP = 40
# Characters of a line that say what it is.
_TELLING = 1500


class _Speech(Enum):
    MESSAGE = auto()  # of the one who failed
    FRAME = auto()  # says that something failed, not what
    NONE = auto()


@lru_cache(maxsize=65_536)
def _speech(line: str) -> _Speech:
    """Return what a line says; its first words tell."""
    head = line.strip()[:_TELLING]
    if is_quoted(head) or words.INNOCENT.search(head):
        return _Speech.NONE
    if words.FRAME.search(head):
        return _Speech.FRAME
    return _Speech.MESSAGE if words.STRONG.match(head) else _Speech.NONE


def is_failure(line: str) -> bool:
    """Whether a line says that something failed."""
    return _speech(line) is not _Speech.NONE


def says_what_failed(line: str) -> bool:
    """Whether a line is a message of the one who failed, not a frame around it."""
    return _speech(line) is _Speech.MESSAGE


def first_error(lines: Sequence[Line]) -> Line | None:
    """Return the first message that says what failed; failing that, the last words before something said that it did.

    What a program complained of while a configure ran that came to its end (`xcrun: command not found`) stopped
    nothing: it is named only if nothing after it failed.
    """
    survived = configured_until(lines)
    index = _first(lines, start=survived)
    if survived and (index is None or not says_what_failed(lines[index].text)):
        before = _strong(lines, start=0, end=survived)
        index = before if before is not None else index if index is not None else _first(lines, start=0)
    if index is None:
        index = next((i for i, line in enumerate(lines) if words.ALARM.match(line.text[:_TELLING])), None)
    return None if index is None else whole_message(lines, index)


def configured_until(lines: Sequence[Line]) -> int:
    """Return where the last configure ended well before the first step failed; 0 if none did."""
    end = 0
    for index, line in enumerate(lines):
        if words.STEP_FAILED.match(line.text):
            break
        if words.CONFIGURED.match(line.text):
            end = index + 1
    return end


def _first(lines: Sequence[Line], *, start: int) -> int | None:
    """Return the index of the line to see first, from `start` on."""
    strong = _strong(lines, start=start, end=len(lines))
    frame = next((i for i in range(start, len(lines)) if _is_frame(lines[i].text)), None)
    if frame is not None and (strong is None or frame < strong):
        spoken = _last_words(lines, frame, start=start) if not words.ANNOUNCES.search(lines[frame].text) else None
        if spoken is not None and words.PROBED_ONLY.search(lines[spoken].text):
            spoken = None
        if spoken is not None and (strong is None or words.COMPLAINT.match(lines[spoken].text)):
            return spoken
    if strong is not None:
        return strong
    if frame is None:
        return next((i for i in range(start, len(lines)) if _complains(lines[i].text)), _requested(lines, start))
    below = _words_below(lines, frame)
    if below is not None:
        return below
    concluded = next((i for i in range(frame, len(lines)) if _concludes(lines[i].text)), None)
    spoken = None if concluded is None else _last_words(lines, concluded, start=start)
    if spoken is not None and words.PROBED_ONLY.search(lines[spoken].text):
        spoken = None
    return spoken if spoken is not None else _telling_frame(lines, start)


def _telling_frame(lines: Sequence[Line], start: int) -> int | None:
    """Return the first frame that names a step or a signal; `ninja: build stopped` alone tells nothing."""
    telling = (i for i in range(start, len(lines)) if words.TELLING_FRAME.match(lines[i].text))
    return next((i for i in telling if _is_frame(lines[i].text)), None)


def _strong(lines: Sequence[Line], *, start: int, end: int) -> int | None:
    raised_by = -1
    for index in range(start, end):
        text = lines[index].text
        if words.PYTHON_TRACEBACK.match(text):
            raised_by = _raised(lines, index)
        if index == raised_by and not words.FRAME.search(text[:_TELLING]):
            return index
        if says_what_failed(text) and not words.PROBED_ONLY.search(text):
            return index
    return None


def _requested(lines: Sequence[Line], start: int) -> int | None:
    return next((i for i in range(start, len(lines)) if words.PROBED_ONLY.search(lines[i].text)), None)


def _raised(lines: Sequence[Line], head: int) -> int:
    """Return where the exception of a traceback stands: the first line that is not indented deeper; -1: cut off."""
    margin = _indent(lines[head].text)
    for index in range(head + 1, len(lines)):
        text = lines[index].text
        if _indent(text) <= margin and not text.lstrip().startswith('File "'):
            return index if words.RAISED.match(text) else -1
    return -1


def _is_frame(text: str) -> bool:
    return _speech(text) is _Speech.FRAME


def _concludes(text: str) -> bool:
    return _is_frame(text) and not words.ANNOUNCES.search(text)


def _complains(text: str) -> bool:
    return _speaks(text) and bool(words.COMPLAINT.match(text.strip()[:_TELLING]))


@lru_cache(maxsize=65_536)
def _speaks(text: str) -> bool:
    text = text.strip()[:_TELLING]
    if is_quoted(text) or words.INNOCENT.search(text) or words.MUTE.match(text) or words.SUCCESS.match(text):
        return False
    return not words.FRAME.search(text)


def _last_words(lines: Sequence[Line], frame: int, *, start: int) -> int | None:
    """Return the complaint, or else the last speaking line, before a frame and after the command that it is about."""
    near: list[int] = []
    for index in range(frame - 1, max(frame - _NEAR, start) - 1, -1):
        if is_quoted(lines[index].text):
            break
        if _speaks(lines[index].text):
            near.insert(0, index)
    complaints = [i for i in near if words.COMPLAINT.match(lines[i].text)]
    last = complaints[-1] if complaints else near[-1] if near else None
    if last is None:
        return None
    # What a program says after its first complaint sums up: "rsync: connection closed", "rsync error: ...".
    program = _program(lines[last].text)
    return next((i for i in near if program and _program(lines[i].text) == program), last)


def _program(text: str) -> str | None:
    match = words.PROGRAM.match(text)
    return match[1] if match else None


def _words_below(lines: Sequence[Line], frame: int) -> int | None:
    """Return the first words below a step's `FAILED: a.o` and its command, up to the next step."""
    if not lines[frame].text.lstrip().startswith("FAILED: "):
        return None
    for index in range(frame + 1, min(frame + _OF_A_STEP, len(lines))):
        if is_quoted(lines[index].text) or _is_frame(lines[index].text):
            return None
        if _speaks(lines[index].text) and len(lines[index].text) < 1000:
            return index
    return None


def whole_message(lines: Sequence[Line], index: int) -> Line:
    """Return the line at `index`; of a CMake message its head with the words below it, which alone say what is wrong.

    Status lines that another stream tore into the message are left out. A line of the body that is
    an error of its own (a compiler's, quoted by CMake) stands for itself.
    """
    head = index
    while head > 0 and index - head < _CMAKE_BODY_LINES and not words.CMAKE_HEAD.match(lines[head].text):
        if not _is_status(lines[head].text) and _indent(lines[head].text) == 0:
            break
        head -= 1
    if not words.CMAKE_HEAD.match(lines[head].text) or (head != index and words.STRONG.match(lines[index].text)):
        return lines[index]
    margin = _indent(lines[head].text)
    parts = [lines[head].text]
    for line in lines[head + 1 : head + 1 + _CMAKE_BODY_LINES]:
        if _is_status(line.text):
            continue
        if _indent(line.text) <= margin or words.STRONG.match(line.text) or len(" ".join(parts)) > 300:
            break
        parts.append(line.text)
    return Line(number=lines[head].number, text=squeeze(" ".join(parts)))


def is_a_good_end(line: str) -> bool:
    """Whether a line says that a configure, a build or an installation came to its end."""
    return bool(words.CONFIGURED.match(line) or words.SUCCESS.match(line)) and not words.LAST_STEP.match(line)


def ends_well(lines: Sequence[Line], *, configured_is_well: bool) -> bool:
    """Whether a sign of success stands in the log with no failure after it.

    Args:
        configured_is_well: a configure that came to its end is such a sign too.
    """
    for line in reversed(lines):
        if is_failure(line.text):
            return False
        if words.SUCCESS.match(line.text) or (configured_is_well and words.CONFIGURED.match(line.text)):
            return True
    return False


def _is_status(line: str) -> bool:
    return line.lstrip().startswith("-- ")


def _indent(line: str) -> int:
    return len(line) - len(line.lstrip())
