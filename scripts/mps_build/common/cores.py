"""How many cores this process may use, and how many threads each of several computing processes gets.

Run as a file it prints the number of cores: the noxfile imports nothing of ours. The standard library is enough.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from pathlib import Path, PurePosixPath

# What OpenMP, MKL, OpenBLAS and Apple's Accelerate read when they are loaded.
THREAD_VARIABLES = ("OMP_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS", "VECLIB_MAXIMUM_THREADS")


def usable_cores(root: Path = Path("/")) -> int:
    """Return how many cores this process may use: the affinity's, and no more than its control groups' quota.

    A quota of 2.5 cores is 2, and the least is 1.

    Args:
        root: the folder that holds /proc and /sys.
    """
    return max(1, min([visible_cores(), *(int(cores) for cores in _quotas(root))]))


def visible_cores() -> int:
    """Return how many cores a library takes by itself: it reads the affinity, and knows of no quota."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def threads_for(processes: int, *, cores: int | None = None) -> int:
    """Return how many threads each of so many processes gets: together no more than the cores, and at least one.

    >>> threads_for(8, cores=16), threads_for(3, cores=16), threads_for(4, cores=2)
    (2, 5, 1)
    """
    return max(1, (usable_cores() if cores is None else cores) // max(1, processes))


def threads_set(environ: Mapping[str, str]) -> int | None:
    """Return the number of threads that the user set, for OpenMP before any other library; None if there is none.

    >>> threads_set({"OMP_NUM_THREADS": "4,2"}), threads_set({"MKL_NUM_THREADS": "3"}), threads_set({"HOME": "/"})
    (4, 3, None)
    """
    return next(filter(None, (_first(environ.get(name, "")) for name in THREAD_VARIABLES)), None)


def with_share(environ: Mapping[str, str], processes: int, *, cores: int | None = None) -> dict[str, str]:
    """Return the environment of each of so many computing processes: it tells them their share of threads.

    What the user set stays, and holds for the other libraries too: of a torch with MKL, MKL's variable decides.

    >>> with_share({}, 8, cores=16)["VECLIB_MAXIMUM_THREADS"]
    '2'
    >>> with_share({"OMP_NUM_THREADS": "4"}, 8, cores=16)["MKL_NUM_THREADS"]
    '4'
    """
    threads = threads_set(environ) or threads_for(processes, cores=cores)
    # An empty one, or a word, is no setting: every process would take all cores.
    set_by_user = {name: value for name, value in environ.items() if name not in THREAD_VARIABLES or _first(value)}
    return {**dict.fromkeys(THREAD_VARIABLES, str(threads)), **set_by_user}


def within_quota(environ: Mapping[str, str], *, cores: int | None = None, visible: int | None = None) -> dict[str, str]:
    """Return the environment of a computing process that is alone: it is given its threads only where a quota holds.

    Without one a library knows better: torch leaves efficiency cores out on a Mac, MKL the second thread of a core.

    >>> within_quota({}, cores=2, visible=64)["OMP_NUM_THREADS"], within_quota({}, cores=64, visible=64)
    ('2', {})
    """
    usable = usable_cores() if cores is None else cores
    return with_share(environ, 1, cores=usable) if usable < (visible or visible_cores()) else dict(environ)


def _first(value: str) -> int | None:
    """Return the threads that a variable gives, of nested levels (4,2) the first; None if it gives none."""
    first = value.partition(",")[0].strip()
    return (int(first) or None) if first.isdecimal() else None


def _quotas(root: Path) -> Iterator[float]:
    """Yield the quota of each control group that holds this process, in cores (cgroup v2, or the cpu controller of v1).

    https://docs.kernel.org/admin-guide/cgroup-v2.html and .../scheduler/sched-bwc.html. A container may see its own
    group as the root, or a path of the host that is not there: every ancestor that is there counts.
    """
    mounts = root / "sys" / "fs" / "cgroup"
    for line in _text(root / "proc" / "self" / "cgroup").splitlines():
        number, _, rest = line.partition(":")
        controllers, _, path = rest.partition(":")
        if number == "0" and not controllers:
            for folder in (*_groups(mounts, path), *_groups(mounts / "unified", path)):
                yield from _cores(*_text(folder / "cpu.max").split()[:2])
        elif "cpu" in controllers.split(","):
            for folder in (*_groups(mounts / controllers, path), *_groups(mounts / "cpu", path)):
                yield from _cores(_text(folder / "cpu.cfs_quota_us"), _text(folder / "cpu.cfs_period_us"))


def _groups(mount: Path, path: str) -> Iterator[Path]:
    """Yield the folder of a group and of each that holds it, up to the mount."""
    parts = [part for part in PurePosixPath(path).parts if part not in ("/", "..")]
    for count in range(len(parts), -1, -1):
        yield mount.joinpath(*parts[:count])


def _cores(quota: str = "", period: str = "") -> Iterator[float]:
    """Yield the quota, unless there is none: `max` in v2, -1 in v1."""
    quota, period = quota.strip(), period.strip()
    if quota.isdecimal() and period.isdecimal() and int(quota) and int(period):
        yield int(quota) / int(period)


def _text(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8", errors="replace")
    except OSError:
        return ""


if __name__ == "__main__":
    print(usable_cores())
