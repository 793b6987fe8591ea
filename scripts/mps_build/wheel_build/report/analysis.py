"""A build's log and graph as figures: seconds by phase and folder, cores kept busy, the critical path, a schedule."""

from __future__ import annotations

import heapq
import posixpath
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import Any

from mps_build.common.json_text import read_json

from .ninja_files import BuildLog, Edge, Graph, Step, longest_path, needed, source_root

_TARGETS = frozenset({"c10", "torch_cpu", "torch_python"})
CONFIGURE, CODEGEN, HEADER, COMPILE = "configure", "codegen", "precompiled header", "compile"
METAL, LINK, INSTALL = "Metal", "link", "install"
PHASES = (CONFIGURE, CODEGEN, HEADER, COMPILE, METAL, LINK, INSTALL)
_OBJECT = re.compile(r"^(?P<folder>.*?)/?CMakeFiles/(?P<target>[^/]+)\.dir/(?P<rest>.+)\.(?:o|obj)$")
_LIBRARY = re.compile(r"\.(?:a|lib|so(?:\.[\d.]+)?|dylib|tbd|dll)$|\.cpython-[^/]+\.so$|^bin/[^/.]+$")
_METAL = re.compile(r"\.(?:air|metallib|metal)$|_metallib\.h$|\.metal\.o$")
_MOST_PARTS = 5
# Rows of benchmarks/results.json that say what share of the compile seconds is left, and the command that gets it.
_RATIOS = {
    "compile.develop_ratio": ("the develop profile, same -O level", "build_wheel --profile develop"),
    "compile.develop_O0_ratio": ("the develop profile at -O0", "docs/build/faster_builds.md"),
    "compile.release_ratio": ("the release profile", "build_wheel --profile release"),
    "cache.warm_ratio": ("a warm compiler cache", "build_wheel --cache ccache, the second time"),
}
_LEAST_SECONDS = 0.5


@dataclass(frozen=True, slots=True, kw_only=True)
class Group:
    """Some steps together: how many, how long in all, and the longest."""

    name: str
    steps: int
    seconds: float
    longest: float
    slowest: str

    def document(self) -> dict[str, Any]:
        """Return the group as JSON; times in seconds."""
        longest = {"longest_seconds": round(self.longest, 3), "slowest": self.slowest}
        return {"name": self.name, "steps": self.steps, "seconds": round(self.seconds, 3), **longest}


@dataclass(frozen=True, slots=True, kw_only=True)
class Placed:
    """One step in the picture: on which lane, from when to when (seconds since the first run, runs end to end)."""

    step: Step
    phase: str
    lane: int
    begin: float
    end: float
    is_critical: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Times:
    """All figures of one build.

    Attributes:
        wall: of all runs together, without the time between them.
        busy: seconds of all steps: on a machine with other work they are more than the CPU's.
        jobs: the most steps at once.
        critical: the chain of steps that waited for each other, None where build.ninja is not there.
        scheduled: wall seconds that the same steps need, as they were ordered and longest chain first, by jobs;
            empty without a graph.
    """

    wall: float
    busy: float
    jobs: int
    runs: tuple[tuple[float, float, int], ...]
    phases: tuple[Group, ...]
    folders: tuple[Group, ...]
    slowest: tuple[Group, ...]
    again: float
    critical: tuple[Step, ...] | None
    as_ordered: float | None
    scheduled: Mapping[int, float]
    placed: tuple[Placed, ...]

    @property
    def mean_busy(self) -> float:
        """Steps that ran at once, averaged over the build's wall time; 0 for an empty build."""
        return self.busy / self.wall if self.wall else 0.0

    @property
    def critical_seconds(self) -> float | None:
        """Seconds of the longest chain of dependent steps; None if the graph is unknown."""
        return None if self.critical is None else sum(step.seconds for step in self.critical)

    @property
    def is_pytorch(self) -> bool:
        """True if a target of PyTorch is among what was compiled."""
        return any(target_of(placed.step.name) in _TARGETS for placed in self.placed)

    def seconds_of(self, *phases: str) -> float:
        """Return the seconds of all steps in these phases, added up."""
        return sum(group.seconds for group in self.phases if group.name in phases)


def analyse(log: BuildLog, graph: Graph | None) -> Times:
    """Return the figures."""
    source = source_root(graph) if graph else None
    makers = graph.makers() if graph else {}
    edges = graph.edges if graph else ()

    def phase(step: Step) -> str:
        place = makers.get(step.name)
        return phase_of(step.name, edges[place] if place is not None else None)

    def folder(step: Step) -> str:
        place = makers.get(step.name)
        return folder_of(step.name, edges[place] if place is not None else None, source)

    every = [step for run in log.runs for step in run.steps]
    critical = _critical(log, graph) if graph else None
    as_ordered: float | None = None
    scheduled: dict[int, float] = {}
    compiled = [step for step in every if phase(step) == COMPILE]
    jobs = max((run.most_at_once() for run in log.runs), default=0)
    if graph and every:
        as_ordered, scheduled = _schedules(log, graph, jobs)
    slowest = sorted(every, key=lambda step: -step.seconds)[:12]
    return Times(
        wall=sum(run.wall for run in log.runs),
        busy=sum(run.busy for run in log.runs),
        jobs=jobs,
        runs=tuple((run.wall, run.busy, len(run.steps)) for run in log.runs),
        phases=tuple(sorted(_groups(every, phase), key=lambda group: PHASES.index(group.name))),
        folders=tuple(sorted(_groups(compiled, folder), key=lambda group: -group.seconds)),
        slowest=tuple(
            Group(name=phase(step), steps=1, seconds=step.seconds, longest=step.seconds, slowest=step.name)
            for step in slowest
        ),
        again=log.done_again(),
        critical=critical,
        as_ordered=as_ordered,
        scheduled=scheduled,
        placed=_placed(log, phase, frozenset(id(step) for step in critical or ())),
    )


def _groups(steps: Sequence[Step], name_of: Any) -> list[Group]:
    found: dict[str, list[Step]] = {}
    for step in steps:
        found.setdefault(name_of(step), []).append(step)
    groups = []
    for name, members in found.items():
        longest = max(members, key=lambda step: step.seconds)
        seconds = sum(step.seconds for step in members)
        groups.append(
            Group(name=name, steps=len(members), seconds=seconds, longest=longest.seconds, slowest=longest.name)
        )
    return groups


def _seconds(log: BuildLog, graph: Graph) -> list[float]:
    """Return the seconds of each edge of the graph, by its last step; 0 for what never ran."""
    last = log.last_steps()
    return [max((last[each].seconds for each in edge.outputs if each in last), default=0.0) for edge in graph.edges]


def _critical(log: BuildLog, graph: Graph) -> tuple[Step, ...]:
    last = log.last_steps()
    chain = longest_path(graph, _seconds(log, graph))
    return tuple(next(last[each] for each in graph.edges[place].outputs if each in last) for place in chain)


def _schedules(log: BuildLog, graph: Graph, jobs: int) -> tuple[float, dict[int, float]]:
    """Return the wall seconds of the last steps in their own order, and longest chain first, for jobs and more."""
    seconds = _seconds(log, graph)
    last = log.last_steps()
    starts: list[float] = []
    base = 0.0
    offsets: dict[int, float] = {}
    for run in log.runs:
        for step in run.steps:
            offsets[id(step)] = base + step.start
        base += run.wall
    for edge in graph.edges:
        starts.append(min((offsets[id(last[each])] for each in edge.outputs if each in last), default=base))
    below = needed(graph)
    chains = _chain_seconds(below, seconds)
    as_ordered = schedule(below, seconds, [starts[place] for place in range(len(seconds))], jobs)
    counts = sorted({jobs, jobs * 2, jobs * 4})
    return as_ordered, {count: schedule(below, seconds, [-chain for chain in chains], count) for count in counts}


def _chain_seconds(below: Sequence[Sequence[int]], seconds: Sequence[float]) -> list[float]:
    """Return, of each edge, the seconds of the longest chain that begins with it."""
    above: list[list[int]] = [[] for _ in below]
    for place, others in enumerate(below):
        for other in others:
            above[other].append(place)
    waiting = [len(others) for others in above]
    total = [0.0] * len(below)
    ready = [place for place, count in enumerate(waiting) if count == 0]
    while ready:
        place = ready.pop()
        total[place] = seconds[place] + max((total[other] for other in above[place]), default=0.0)
        for other in below[place]:
            waiting[other] -= 1
            if waiting[other] == 0:
                ready.append(other)
    return total


def schedule(below: Sequence[Sequence[int]], seconds: Sequence[float], rank: Sequence[float], jobs: int) -> float:
    """Return the wall seconds of running every edge with so many at once, of the ready ones the lowest rank first."""
    above: list[list[int]] = [[] for _ in below]
    for place, others in enumerate(below):
        for other in others:
            above[other].append(place)
    waiting = [len(others) for others in below]
    ready = [(rank[place], place) for place, count in enumerate(waiting) if count == 0]
    heapq.heapify(ready)
    running: list[tuple[float, int]] = []
    now = 0.0
    while ready or running:
        while ready and (len(running) < jobs or seconds[ready[0][1]] == 0):
            _, place = heapq.heappop(ready)
            heapq.heappush(running, (now + seconds[place], place))
            if seconds[place] == 0:
                break
        now, done = heapq.heappop(running)
        for other in above[done]:
            waiting[other] -= 1
            if waiting[other] == 0:
                heapq.heappush(ready, (rank[other], other))
    return now


def _placed(log: BuildLog, phase: Any, critical: frozenset[int]) -> tuple[Placed, ...]:
    """Return every step on the first lane that is free when it begins; runs follow each other."""
    placed = []
    base = 0.0
    for run in log.runs:
        free: list[float] = []
        for step in run.steps:
            lane = next((number for number, until in enumerate(free) if until <= step.start), len(free))
            free[lane : lane + 1] = [step.end]
            placed.append(
                Placed(
                    step=step,
                    phase=phase(step),
                    lane=lane,
                    begin=base + step.start,
                    end=base + step.end,
                    is_critical=id(step) in critical,
                )
            )
        base += run.wall
    return tuple(placed)


def has_precompiled_header(times: Times) -> bool:
    """Tell whether the build compiled a precompiled header."""
    return any(group.name == HEADER for group in times.phases)


# What a step was for: codegen, compile (of which folder), precompiled header, Metal, link, install.


def phase_of(output: str, edge: Edge | None = None) -> str:
    """Return the phase; by the rule of the build file where there is one, else by the output's name alone.

    >>> phase_of("caffe2/CMakeFiles/torch_cpu.dir/__/aten/src/ATen/Context.cpp.o")
    'compile'
    >>> phase_of("lib/libtorch_cpu.dylib"), phase_of("caffe2/aten/src/ATen/kernels_basic.metallib")
    ('link', 'Metal')
    """
    rule = edge.rule if edge else ""
    if output.endswith("build.ninja") or rule == "RERUN_CMAKE":
        return CONFIGURE
    if _METAL.search(output) or any(each.endswith((".metal", ".air", ".metallib")) for each in _inputs(edge)):
        return METAL
    if output.endswith((".pch", ".gch")):
        return HEADER
    if "_COMPILER_" in rule or (not rule and output.endswith((".o", ".obj"))):
        return COMPILE
    if "_LINKER_" in rule or (not rule and _LIBRARY.search(output)):
        return LINK
    if re.search(r"(?:^|/)(?:install|CMakeFiles/install\.util|CMakeFiles/install)$", output):
        return INSTALL
    return CODEGEN


def _inputs(edge: Edge | None) -> tuple[str, ...]:
    return edge.explicit if edge else ()


def folder_of(output: str, edge: Edge | None = None, source: str | None = None) -> str:
    """Return the folder of the source that an object is made of, relative to the tree as far as that is known.

    CMake names an object after its source; where the build file is there, its own input is right in any case.

    >>> folder_of("caffe2/CMakeFiles/torch_cpu.dir/__/aten/src/ATen/native/Sorting.cpp.o")
    'aten/src/ATen/native'
    """
    if edge and edge.explicit and source:
        path = edge.explicit[0]
        if path.startswith(f"{source}/"):
            return _short(posixpath.dirname(path[len(source) + 1 :]))
    match = _OBJECT.match(output)
    if match is None:
        return _short(posixpath.dirname(output))
    rest = match["rest"].replace("__/", "../")
    return _short(posixpath.dirname(posixpath.normpath(posixpath.join(match["folder"], rest))))


def _short(folder: str) -> str:
    parts = PurePosixPath(folder).parts
    return "/".join(part for part in parts[:_MOST_PARTS] if part != "/") or "."


def target_of(output: str) -> str | None:
    """Return the CMake target that an object belongs to."""
    match = _OBJECT.match(output)
    return match["target"] if match else None


# What the next lever would save: from this log's own steps, or from a ratio that was measured and is on record.
#
# Nothing here is guessed: a lever whose ratio has no row in benchmarks/results.json is named as unmeasured, without a
# figure. Ratios of CPU seconds become wall seconds by the cores that this build kept busy.


@dataclass(frozen=True, slots=True, kw_only=True)
class Lever:
    """One thing to change: wall seconds it would save (None: never measured), and where that figure is from."""

    name: str
    saves: float | None
    source: str
    how: str = ""

    def document(self) -> dict[str, Any]:
        """Return the lever as JSON; `saves_seconds` is null if it was never measured."""
        saves = None if self.saves is None else round(self.saves, 1)
        return {"name": self.name, "saves_seconds": saves, "from": self.source, "how": self.how}


def read_results(path: Path) -> dict[str, Mapping[str, Any]]:
    """Return the measured rows by name; none where the file is not there (an installed tool has no benchmarks)."""
    try:
        rows = read_json(path)
        return {row["name"]: row for row in rows if isinstance(row.get("median"), (int, float))}
    except (OSError, ValueError, KeyError, TypeError, AttributeError):
        return {}


def levers(times: Times, results: Mapping[str, Mapping[str, Any]], *, cache_used: bool = False) -> tuple[Lever, ...]:
    """Return what there is to change, the largest saving first, those without a figure last."""
    found = [*_by_schedule(times), *_by_ratio(times, results, cache_used), *_by_repeats(times)]
    worth = [lever for lever in found if lever.saves is None or lever.saves >= _LEAST_SECONDS]
    return tuple(sorted(worth, key=lambda lever: -(lever.saves if lever.saves is not None else -1.0)))


def _by_schedule(times: Times) -> list[Lever]:
    """Return what order and cores would give, by running this log's steps again on paper."""
    if times.as_ordered is None:
        return []
    now = times.as_ordered
    found = []
    for jobs, wall in times.scheduled.items():
        if jobs == times.jobs:
            name, how = "longest chain of steps first", "ninja 1.12 or newer does so by itself, from its last log"
        else:
            name, how = f"{jobs} jobs in place of {times.jobs}", "as many cores, and 2 GB of memory for each"
        source = "this log's steps and graph, scheduled anew; each step as long as it was"
        found.append(Lever(name=name, saves=now - wall, source=source, how=how))
    return found


def _by_ratio(times: Times, results: Mapping[str, Mapping[str, Any]], cache_used: bool) -> list[Lever]:
    found: list[Lever] = []
    seconds = times.seconds_of(COMPILE, HEADER)
    if not times.is_pytorch:  # the ratios were measured on PyTorch's files, and say nothing of others
        return found
    for row, (name, how) in _RATIOS.items():
        if seconds == 0 or (cache_used and row.startswith("cache.")):
            continue
        if has_precompiled_header(times) and row.startswith("compile."):
            continue  # its own seconds are not stock's, which the ratio is against
        if row not in results:
            found.append(Lever(name=name, saves=None, source=f"{row} has not been measured yet", how=how))
            continue
        ratio = float(results[row]["median"])
        saves = seconds * (1 - ratio) / times.mean_busy if times.mean_busy else 0.0
        source = f"{row} = {ratio:g} in benchmarks/results.json ({results[row].get('machine', '?')})"
        found.append(Lever(name=name, saves=saves, source=source, how=how))
    return found


def _by_repeats(times: Times) -> list[Lever]:
    if not times.again or not times.mean_busy:
        return []
    source, how = "this log: steps whose outputs a later step made again", "`ninja -d explain` says why it does so"
    return [Lever(name="compile nothing again", saves=times.again / times.mean_busy, source=source, how=how)]
