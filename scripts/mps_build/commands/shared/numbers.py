"""Numbers on the command line, with their limits."""

from __future__ import annotations

import argparse
import math
import re

from mps_build.common.errors import UsageError

# Python reads no number of 4,301 digits, no float holds one of 309, and no file's name is as long.
_MOST_DIGITS = 256
_WEEK = 7 * 24 * 3600


def check_digits(text: str) -> None:
    """Refuse an argument that holds a number no program can read, wherever it would be read.

    Raises:
        UsageError: it does.
    """
    if found := re.search(rf"\d{{{_MOST_DIGITS},}}", text):
        raise UsageError(f"{text[:40]}…: holds a number of {len(found[0])} digits", hint="give a shorter one")


def amount(text: str) -> float:
    """Return a number from 0 on: of seconds, days or gigabytes.

    Raises:
        argparse.ArgumentTypeError: it is none, or beyond a billion.
    """
    try:
        found = float(text)
    except ValueError:
        found = math.nan
    if not 0 <= found <= 1e9:
        raise argparse.ArgumentTypeError(f"{text!r} is not a number from 0 to a billion")
    return found


def count(text: str) -> int:
    """Return a whole number from 1 on.

    Raises:
        argparse.ArgumentTypeError: it is none.
    """
    if not re.fullmatch(r"[1-9][0-9]{0,5}", text):
        raise argparse.ArgumentTypeError(f"{text!r} is not a number from 1 on")
    return int(text)


def duration(text: str) -> float:
    """Return the seconds of a time above 0: `90`, `90s`, `10m` or `1h`.

    Raises:
        argparse.ArgumentTypeError: it is none, or longer than a week.

    >>> duration("90"), duration("1.5m"), duration("1h")
    (90.0, 90.0, 3600.0)
    """
    found = re.fullmatch(r"([0-9]{1,9}(?:\.[0-9]{1,3})?)([smh]?)", text)
    seconds = float(found[1]) * {"": 1, "s": 1, "m": 60, "h": 3600}[found[2]] if found else 0.0
    if not 0 < seconds <= _WEEK:
        raise argparse.ArgumentTypeError(f"{text!r} is not a time: seconds, 10m or 1h")
    return seconds
