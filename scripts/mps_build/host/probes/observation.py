"""One probe's answer as facts; and all answers of a host, asked for a fact."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from ..macos.commands import Call, calls_of
from ..macos.parsers import parse_probe
from .probers import Prober

Facts = Mapping[str, Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class Observation:
    """One probe's answer as facts, with the text it came from; without an answer in time there is no fact."""

    argv: tuple[str, ...]
    facts: Facts
    text: str
    calls: tuple[Call, ...]


def observations(prober: Prober) -> tuple[Observation, ...]:
    """Return every answer that a prober has, as facts."""
    rows = []
    for answer, env in prober.answers():
        if answer.timed_out:
            facts: Facts = {"timed_out": True}
        else:
            facts = parse_probe(answer.argv, answer.stdout, answer.stderr, answer.exit, env)
        words = [f"{name}={value}" for name, value in env.items()] + list(answer.argv)
        text = "\n".join(part.strip() for part in (answer.stdout, answer.stderr) if part.strip())
        rows.append(Observation(argv=answer.argv, facts=facts, text=text, calls=calls_of(words)))
    return tuple(rows)


def values(rows: tuple[Observation, ...], key: str, *programs: str) -> Iterator[Any]:
    """Yield each value that an answer gives for a key, of certain programs if named."""
    for row in rows:
        asked = not programs or any(call.program in programs for call in row.calls)
        if asked and row.facts.get(key) is not None:
            yield row.facts[key]
