"""From which macOS on each torch's MPS really works, and what torch itself says: two facts, since they differ."""

from __future__ import annotations

from packaging.version import Version

# First release of each era. Floor: what MPSDevice's constructor asks for, read in the machine code of every wheel from
# 1.12.1 to 2.15.0 (2.15 declares 15.0 and enforces nothing). Message: the sentence in libtorch_cpu; up to 2.14 it is
# said whenever there is no device, whatever the system: https://github.com/pytorch/pytorch/issues/177819
_FLOORS = (("1.12", "12.3"), ("2.5", "13.0"), ("2.9", "14.0"), ("2.15", "15.0"))
_MESSAGES = (("1.12", "12.3"), ("2.6", "13.0"), ("2.9", "14.0"), ("2.15", "15.0"))


def macos_floor(torch: str) -> str | None:
    """Return the oldest macOS on which this torch's MPS works; None for a torch without MPS, or an unknown version.

    >>> macos_floor("2.5.1"), macos_floor("2.15.0.dev20260915"), macos_floor("1.11.0")
    ('13.0', '15.0', None)
    """
    return _of(torch, _FLOORS)


def said_floor(torch: str) -> str | None:
    """Return the macOS that this torch's own message names.

    >>> said_floor("2.5.1")
    '12.3'
    """
    return _of(torch, _MESSAGES)


def highest_floor_behind(said: str) -> str | None:
    """Return the highest floor of the releases whose message names this macOS; None if none names it.

    >>> highest_floor_behind("12.3"), highest_floor_behind("13.0")
    ('13.0', '13.0')
    """
    starts = sorted({first for first, _ in (*_FLOORS, *_MESSAGES)}, key=Version)
    floors = [macos_floor(first) for first in starts if said_floor(first) == said]
    return max(filter(None, floors), key=Version, default=None)


def is_too_old(macos: str, torch: str) -> bool:
    """True if this macOS is older than the floor of this torch.

    >>> is_too_old("12.7.6", "2.5.1"), is_too_old("12.7.6", "2.4.1"), is_too_old("26.1", "2.15.0")
    (True, False, False)
    """
    floor = macos_floor(torch)
    return floor is not None and Version(macos) < Version(floor)


def _of(torch: str, eras: tuple[tuple[str, str], ...]) -> str | None:
    try:
        release = Version(Version(torch).base_version)
    except ValueError:
        return None
    return next((floor for first, floor in reversed(eras) if release >= Version(first)), None)
