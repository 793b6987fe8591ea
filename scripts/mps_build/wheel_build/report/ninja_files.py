"""A .ninja_log as runs of steps: `text -> BuildLog`. Versions 5 to 7; concatenated, interrupted and rewritten logs too.

A line is: start and end in ms since that ninja began, a time stamp, one output, the command's hash. A step with
several outputs writes a line for each. Several runs follow one another in the file, until ninja rewrites it and loses
their order. From version 6 on the stamp is the moment at which the step began, so that stamp minus start is the moment
at which its ninja began: that tells runs apart in any order (steps that CMake marks `restat` stamp their output's
time instead, which is later by up to their own length). In version 5 the order alone tells.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

_HEAD = re.compile(r"^# ninja log v(\d+)\s*$")
VERSIONS = range(5, 8)
_SLACK_MS = 1500  # a file system's clock against ninja's
# A rewritten log ends earlier than the line before at every other line; one of 50 runs does so 49 times.
_MOST_DROPS_SHARE = 0.2
_ESCAPED = {"$$": "\x01", "$ ": "\x02", "$:": "\x03"}
_REFERENCE = re.compile(r"\$(?:\{([\w.-]+)\}|([\w-]+))")
_INCLUDE = re.compile(r"^(?:include|subninja)\s+(\S+)\s*$", re.MULTILINE)
_VARIABLE = re.compile(r"^([\w.-]+)\s*=\s*(.*)$")
_MOST_DEPTH = 8


@dataclass(frozen=True, slots=True, kw_only=True)
class Step:
    """One command: seconds since its ninja began, and what it made."""

    start: float
    end: float
    outputs: tuple[str, ...]

    @property
    def seconds(self) -> float:
        """How long the step took."""
        return self.end - self.start

    @property
    def name(self) -> str:
        """Its first output, which names it in reports."""
        return self.outputs[0]


@dataclass(frozen=True, slots=True, kw_only=True)
class Run:
    """One ninja: its steps by their start, and the moment it began (seconds since 1970), where the log tells."""

    steps: tuple[Step, ...]
    began: float | None

    @property
    def wall(self) -> float:
        """Seconds from the start of this run of ninja to the end of its last step."""
        return max((step.end for step in self.steps), default=0.0)

    @property
    def busy(self) -> float:
        """Seconds of all its steps, added up."""
        return sum(step.seconds for step in self.steps)

    def most_at_once(self) -> int:
        """Return how many steps ran at the same time at most."""
        moments = sorted([(step.start, 1) for step in self.steps] + [(step.end, -1) for step in self.steps])
        most = now = 0
        for _, change in moments:
            now += change
            most = max(most, now)
        return most


@dataclass(frozen=True, slots=True, kw_only=True)
class BuildLog:
    """The whole file. `notes` say what of it could not be used or separated."""

    version: int
    runs: tuple[Run, ...]
    notes: tuple[str, ...]

    def last_steps(self) -> dict[str, Step]:
        """Return, of each output, the step that made it last."""
        return {output: step for run in self.runs for step in run.steps for output in step.outputs}

    def done_again(self) -> float:
        """Return the seconds of steps whose every output a later step made once more."""
        last = self.last_steps()
        return sum(
            step.seconds
            for run in self.runs
            for step in run.steps
            if all(last[output] is not step for output in step.outputs)
        )


@dataclass(slots=True)
class _Line:
    start: int
    end: int
    stamp_ms: float
    outputs: dict[str, None]  # a set in the order of the file

    @property
    def origin(self) -> float:
        return self.stamp_ms - self.start


def read_log(text: str) -> BuildLog | None:
    """Return the log; None if its version is not known. A line cut short is left out and reported."""
    version = 0
    lines: list[_Line] = []
    broken = 0
    known: dict[tuple[int, int, str], _Line] = {}
    for line in text.splitlines():
        if head := _HEAD.match(line):
            version = int(head[1])
            known = {}
            continue
        columns = line.split("\t")
        if version not in VERSIONS or len(columns) != 5 or not all(each.isdecimal() for each in columns[:3]):
            broken += bool(line.strip())
            continue
        start, end, stamp = map(int, columns[:3])
        if end < start:
            broken += 1
            continue
        step = known.get((start, end, columns[4]))
        if step is not None and columns[3] not in step.outputs:
            step.outputs[columns[3]] = None
            continue
        stamp_ms = stamp / 1e6 if stamp > 10**14 else stamp * 1e3  # ninja before 1.9 wrote seconds
        known[start, end, columns[4]] = step = _Line(start, end, stamp_ms, {columns[3]: None})
        lines.append(step)
    if version not in VERSIONS:
        return None
    notes = [f"{broken} lines of the log are not entries and were left out"] if broken else []
    if version >= 6:
        runs = _by_origin(lines)
    else:
        runs = _by_order(lines)
        if len(runs) > 2 and len(runs) > _MOST_DROPS_SHARE * len(lines):
            notes.append("ninja has rewritten this log (version 5), so that its runs cannot be separated: shown as one")
            runs = [(None, lines)]
    return BuildLog(version=version, runs=tuple(_run(began, steps) for began, steps in runs), notes=tuple(notes))


def _run(began: float | None, lines: Sequence[_Line]) -> Run:
    steps = [Step(start=line.start / 1e3, end=line.end / 1e3, outputs=tuple(line.outputs)) for line in lines]
    steps.sort(key=lambda step: (step.start, step.end))
    return Run(steps=tuple(steps), began=began / 1e3 if began is not None else None)


def _by_order(lines: Iterable[_Line]) -> list[tuple[float | None, list[_Line]]]:
    """Part where a step ends before the line above it: within one run lines are written as steps end."""
    runs: list[tuple[float | None, list[_Line]]] = []
    previous = None
    for line in lines:
        if previous is None or line.end < previous:
            runs.append((None, []))
        runs[-1][1].append(line)
        previous = line.end
    return runs


def _by_origin(lines: Sequence[_Line]) -> list[tuple[float | None, list[_Line]]]:
    """Part by the moment at which each step's ninja began; a run's true one is that of most of its steps."""
    groups: list[list[_Line]] = []
    for line in sorted(lines, key=lambda line: line.origin):
        if not groups or line.origin - groups[-1][-1].origin > _SLACK_MS:
            groups.append([])
        groups[-1].append(line)
    runs: list[tuple[float, list[_Line]]] = []
    for group in sorted(groups, key=len, reverse=True):
        for line in group:
            home = next((run for run in runs if _may_belong(line, run[0])), None)
            if home is None:
                home = (group[0].origin, [])
                runs.append(home)
            home[1].append(line)
    return sorted(runs, key=lambda run: run[0])  # type: ignore[return-value, arg-type]


def _may_belong(line: _Line, origin: float) -> bool:
    """Tell whether a step may be of the ninja that began at `origin`: its stamp lies in its own time there."""
    return line.stamp_ms - line.end - _SLACK_MS <= origin <= line.origin + _SLACK_MS


# A build.ninja as a graph: which edge makes an output, by which rule, from what.


@dataclass(frozen=True, slots=True, kw_only=True)
class Edge:
    """One `build` statement."""

    rule: str
    outputs: tuple[str, ...]
    inputs: tuple[str, ...]
    explicit: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Graph:
    """All edges, and by which each output is made."""

    edges: tuple[Edge, ...]

    def makers(self) -> dict[str, int]:
        """Return output to the place of its edge."""
        return {output: place for place, edge in enumerate(self.edges) for output in edge.outputs}


def read_graph(folder: Path) -> Graph | None:
    """Return the graph of a build folder, with the files that its build.ninja includes; None if there is none."""
    path = folder / "build.ninja"
    return Graph(tuple(_edges(path, {}, 0))) if path.is_file() else None


def parse_graph(text: str) -> Graph:
    """Return the graph of one file's text; what it includes is not looked at."""
    return Graph(tuple(edge for edge in _statements(text, {}) if isinstance(edge, Edge)))


def _edges(path: Path, variables: dict[str, str], depth: int) -> Iterator[Edge]:
    try:
        text = path.read_text(encoding="utf-8", errors="replace")
    except OSError:
        return
    for statement in _statements(text, variables):
        if isinstance(statement, Edge):
            yield statement
        elif depth < _MOST_DEPTH:
            yield from _edges(path.parent / statement, variables, depth + 1)


def _statements(text: str, variables: dict[str, str]) -> Iterator[Edge | str]:
    """Yield edges, and the names of included files, in the order of the file; keeps the file's own variables."""
    for line in text.replace("$\r\n", "$\n").replace("$\n", " ").split("\n"):
        if line.startswith("build "):
            edge = _edge(line[len("build ") :], variables)
            if edge is not None:
                yield edge
        elif match := _INCLUDE.match(line):
            yield match[1]
        elif not line.startswith((" ", "\t", "#")) and (match := _VARIABLE.match(line)):
            variables[match[1]] = _shown(_hidden(match[2], variables))


def _edge(line: str, variables: dict[str, str]) -> Edge | None:
    """Return `outs | implicit outs: rule ins | implicit || order only |@ validations` as an edge."""
    # A colon or a space in a name is escaped, so the first bare colon ends the outputs.
    before, _, after = _hidden(line, variables).partition(":")
    outputs = tuple(_shown(word) for word in before.split() if word != "|")
    words = after.split()
    if not words:
        return None
    rule, *inputs = words
    if "|@" in inputs:  # validations are not dependencies
        inputs = inputs[: inputs.index("|@")]
    marks = [place for place, word in enumerate(inputs) if word in ("|", "||")]
    explicit = inputs[: marks[0]] if marks else inputs
    return Edge(
        rule=rule,
        outputs=outputs,
        inputs=tuple(_shown(word) for word in inputs if word not in ("|", "||")),
        explicit=tuple(map(_shown, explicit)),
    )


def _hidden(text: str, variables: dict[str, str]) -> str:
    """Return a text with its variables in place and its escaped signs hidden from those who split it."""
    if "$" not in text:
        return text
    for escaped, sign in _ESCAPED.items():
        text = text.replace(escaped, sign)
    return _REFERENCE.sub(lambda match: variables.get(match[1] or match[2], ""), text)


def _shown(text: str) -> str:
    for escaped, sign in _ESCAPED.items():
        text = text.replace(sign, escaped[1])
    return text


def source_root(graph: Graph) -> str | None:
    """Return the root of the source tree: the folder of the topmost CMakeLists.txt that makes build.ninja anew."""
    lists = [
        each.removesuffix("/CMakeLists.txt")
        for edge in graph.edges
        if "build.ninja" in edge.outputs
        for each in edge.inputs
        if each.endswith("/CMakeLists.txt")
    ]
    return min(lists, key=len, default=None)


def longest_path(graph: Graph, seconds: Sequence[float]) -> tuple[int, ...]:
    """Return the edges of the chain that takes longest, each waiting for the one before; edges of no time are left out.

    Args:
        seconds: of each edge, in the order of `graph.edges`.
    """
    below = needed(graph)
    total = [0.0] * len(below)
    previous: list[int] = [-1] * len(below)
    done: set[int] = set()
    for place in _in_order(below):
        # Of a circle, which ninja would refuse, only what was reached before counts: the chain has an end.
        longest = max((other for other in below[place] if other in done), key=total.__getitem__, default=-1)
        done.add(place)
        previous[place] = longest
        total[place] = seconds[place] + (total[longest] if longest >= 0 else 0.0)
    place = max(range(len(total)), key=total.__getitem__, default=-1)
    chain = []
    while place >= 0:
        if seconds[place] > 0:
            chain.append(place)
        place = previous[place]
    return tuple(reversed(chain))


def needed(graph: Graph) -> list[list[int]]:
    """Return, of each edge, the edges whose outputs it takes."""
    makers = graph.makers()
    return [
        sorted({makers[each] for each in edge.inputs if each in makers and makers[each] != place})
        for place, edge in enumerate(graph.edges)
    ]


def _in_order(below: Sequence[Sequence[int]]) -> list[int]:
    """Return the edges so that each comes after what it needs; a cycle, which ninja refuses, is cut anywhere."""
    state = bytearray(len(below))
    order: list[int] = []
    for root in range(len(below)):
        stack = [(root, iter(below[root]))] if not state[root] else []
        state[root] = 1
        while stack:
            place, rest = stack[-1]
            following = next((each for each in rest if not state[each]), None)
            if following is None:
                stack.pop()
                order.append(place)
            else:
                state[following] = 1
                stack.append((following, iter(below[following])))
    return order
