"""A build.ninja as a graph: which edge makes an output, by which rule, from what."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

_ESCAPED = {"$$": "\x01", "$ ": "\x02", "$:": "\x03"}
_REFERENCE = re.compile(r"\$(?:\{([\w.-]+)\}|([\w-]+))")
_INCLUDE = re.compile(r"^(?:include|subninja)\s+(\S+)\s*$", re.MULTILINE)
_VARIABLE = re.compile(r"^([\w.-]+)\s*=\s*(.*)$")
_MOST_DEPTH = 8


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
