"""Which line of a failed log a person should see first, and whether the log failed at all."""

from __future__ import annotations

import re
from collections.abc import Sequence

from mps_build.common.logs.text import Line, squeeze

from .log import is_quoted

# A message of the one who failed.
_STRONG = re.compile(
    r"""^\s*(?:
      [^\s:][^:]*:\d+(?::\d+)?:\ (?:fatal\ )?error:\ .                     # clang, gcc, metal
    | (?:fatal\ )?error:\ .
    | [\w./+@-]+:\ (?:fatal\ )?error:\ .                                    # clang++: error:, xcrun: error:
    | \#\#\[error\]. | ::error\b
    | (?:ERROR|FATAL|Fatal|fatal)\b:?\ .
    | CMake\ Error\b
    | ld:\ (?!warning). | Undefined\ symbols\ for\ architecture | duplicate\ symbol\b
    | (?:E\s+)?[A-Za-z_][\w.]*(?:Error|Exception|KeyboardInterrupt)(?::|\s*$)
    | (?:E\s+)?(?:Assertion\ failed: | Fatal\ Python\ error: | OMP:\ Error | dyld(?:\[\d+\])?:)
    | libc\+\+abi:\ terminating
    | (?:\S+:\ line\ \d+:\ )?\d+\ (?:Killed|Segmentation\ fault|Abort\ trap|Bus\ error)
    | zsh:\ (?:killed|abort|segmentation\ fault|bus\ error|command\ not\ found|no\ such\ file)
    | (?:/bin/)?(?:ba|z|da|k)?sh:\ .*(?:not\ found|No\ such\ file|Permission\ denied|cannot\ execute)
    | error\ in\ \S+\ setup\ command:
    | \S*python[\d.]*:\ can't\ open\ file
    | make(?:\[\d+\])?:\ \*\*\*\ No\ rule
    | Torch\ not\ compiled\ with\ MPS
    )""",
    re.VERBOSE,
)
# Says that something below it failed, not what.
_FRAME = re.compile(
    r"""linker\ command\ failed | error:\ command\ .*\ failed
    | subprocess-exited-with-error | metadata-generation-failed
    | ERROR:?\ (?:Failed\ (?:to\ build|building)|Could\ not\ build|Backend\ subprocess\ exited|.{0,12}exit(?:ed)?\ code)
    | CalledProcessError | Error\ compiling\ objects\ for\ extension | distutils\.errors\.\w+:\ command
    | Process\ completed\ with\ exit\ code | frontend\ command\ failed | clang.*:\ note: | SystemExit
    | CMake\ (?:build|install)\ failed | CMake\ Error:\ (?:Generator|Problem\ processing) | CompileError:\ command
    | ninja:\ build\ stopped | Failed\ to\ build\ | \bmake(?:\[\d+\])?:\ \*\*\*\ \[
    | ^FAILED\b | Configuring\ incomplete
    | too\ many\ errors\ emitted""",
    re.VERBOSE,
)
# Sounds like trouble and is none.
_INNOCENT = re.compile(
    r"""would\ duplicate\ path | unable\ to\ lookup\ item\ .PlatformVersion | ERROR:delocate\.libsana
    | ^\s*--\  | ^\s*\[\ ?\d+(?:/\d+|%)[^\]]*\]\  | \bwarning:\  | \bnote:\  | UserWarning
    | dependency\ resolver\ does\ not | ^\s*objc\[\d+\] | sysctl: | ^\s*ERROR:\ test_ | \b0\ errors?\b""",
    re.VERBOSE,
)
# A question that build scripts ask and can do without (setup.py asks git for a commit, in a tarball too).
_ASKED_ONLY = re.compile(r"fatal: not a git repository")
_SUCCESS = re.compile(
    r"""^\s*(?:
      Successfully\ (?:built|installed|created|uploaded)\b
    | (?:Created|created|Built|built)\ wheel\b | creating\ '[^']+\.whl' | removing\ build/bdist
    | \[(\d+)/\1\]\ (?:Install|Linking|Running\ utility)
    | Finished\ processing\ dependencies
    | =+\ \d+\ passed(?!.*(?:failed|error))
    | (?:BUILD\ SUCCESSFUL|Build\ succeeded|All\ checks\ passed)
    )""",
    re.VERBOSE,
)


_CMAKE_HEAD = re.compile(r"\s*CMake (?:Error|Warning)(?: \(dev\))? at \S")
_CMAKE_BODY_LINES = 12
_STEP_FAILED = re.compile(r"\s*(?:FAILED: |make(?:\[\d+\])?: \*\*\* \[)")
_CONFIGURED = re.compile(r"\s*-- Build files have been written to:")


def is_failure(line: str) -> bool:
    """Whether a line says that something failed."""
    return not is_quoted(line) and not _INNOCENT.search(line) and bool(_STRONG.match(line) or _FRAME.search(line))


def first_error(lines: Sequence[Line]) -> Line | None:
    """Return the first message that says what failed; failing that, the first that says that something did.

    What a program complained of while a configure ran that came to its end (`xcrun: command not found`) stopped
    nothing: it is named only if nothing after it failed.
    """
    survived = _configured(lines)
    after = _first_error(lines, start=survived)
    if survived and (after is None or not _STRONG.match(after.text)):
        return _first_error(lines, start=0) or after
    return after


def _configured(lines: Sequence[Line]) -> int:
    """Return where the last configure ended well before the first step failed; 0 if none did."""
    end = 0
    for index, line in enumerate(lines):
        if _STEP_FAILED.match(line.text):
            break
        if _CONFIGURED.match(line.text):
            end = index + 1
    return end


def _first_error(lines: Sequence[Line], *, start: int) -> Line | None:
    frame = asked = None
    for index, line in enumerate(lines[start:], start):
        if is_quoted(line.text) or _INNOCENT.search(line.text):
            continue
        if _FRAME.search(line.text):
            if frame is None and _STEP_FAILED.match(line.text):
                frame = line
        elif _ASKED_ONLY.search(line.text):
            asked = asked or line
        elif _STRONG.match(line.text):
            return whole_message(lines, index)
    return frame or asked


def whole_message(lines: Sequence[Line], index: int) -> Line:
    """Return the line at `index`; of a CMake message its head with the words below it, which alone say what is wrong.

    Status lines that another stream tore into the message are left out. A line of the body that is
    an error of its own (a compiler's, quoted by CMake) stands for itself.
    """
    head = index
    while head > 0 and index - head < _CMAKE_BODY_LINES and not _CMAKE_HEAD.match(lines[head].text):
        if not _is_status(lines[head].text) and _indent(lines[head].text) == 0:
            break
        head -= 1
    if not _CMAKE_HEAD.match(lines[head].text) or (head != index and _STRONG.match(lines[index].text)):
        return lines[index]
    margin = _indent(lines[head].text)
    words = [lines[head].text]
    for line in lines[head + 1 : head + 1 + _CMAKE_BODY_LINES]:
        if _is_status(line.text):
            continue
        if _indent(line.text) <= margin or _STRONG.match(line.text) or len(" ".join(words)) > 300:
            break
        words.append(line.text)
    return Line(number=lines[head].number, text=squeeze(" ".join(words)))


def ends_well(lines: Sequence[Line], *, configured_is_well: bool) -> bool:
    """Whether a sign of success stands in the log with no failure after it.

    Args:
        configured_is_well: a configure that came to its end is such a sign too.
    """
    for line in reversed(lines):
        if is_failure(line.text):
            return False
        if _SUCCESS.match(line.text) or (configured_is_well and _CONFIGURED.match(line.text)):
            return True
    return False


def _is_status(line: str) -> bool:
    return line.lstrip().startswith("-- ")


def _indent(line: str) -> int:
    return len(line) - len(line.lstrip())
