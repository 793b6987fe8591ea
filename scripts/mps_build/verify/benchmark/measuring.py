"""Runs the measuring programme: one child for all rows, started again behind the row at which it died."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from mps_build.common.json_text import parse_json
from mps_build.common.process import Command

from ..suite.child import ChildEnd, run_child
from ..suite.outcomes import JudgeText, describe_end, last_lines, signal_name
from ..suite.request import Limits

# What a process may write while its numbers look fine: the GPU dropped work.
_VOIDING = frozenset({"gpu_fault", "gpu_timeout", "virtual_gpu_unusable"})
_REFUSED = 4
_MOST_CHILDREN = 200

Event = Mapping[str, Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class MeasureRequest:
    """One run of the measuring programme; `deadline` is a moment of the monotonic clock."""

    interpreter: Path
    programme: Path
    environ: Mapping[str, str]
    folder: Path
    device: str
    limits: Limits
    quick: bool = False
    deadline: float | None = None
    only: tuple[str, ...] = ()
    plant: str | None = None


@dataclass(slots=True, kw_only=True)
class Measured:
    """What the children reported so far, this session's and earlier ones'."""

    plan: tuple[str, ...] = ()
    rows: dict[str, dict[str, Any]] = field(default_factory=dict)
    ceilings: dict[str, float] = field(default_factory=dict)
    ceilings_of: dict[str, str] = field(default_factory=dict)
    facts: dict[str, Any] = field(default_factory=dict)
    sentinel: list[dict[str, Any]] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    plant_hits: int | None = None
    hits_by_row: dict[str, int | None] = field(default_factory=dict)
    refused: str | None = None
    broken: str | None = None

    def take(self, event: Event) -> None:
        """Take one line in."""
        kind = event.get("event")
        if kind == "plan":
            self.plan = tuple(str(row) for row in event.get("ids", ()))
        elif kind == "facts":
            self.facts = {key: value for key, value in event.items() if key not in ("event", "output_bytes")}
        elif kind == "sentinel":
            self.sentinel.append({key: event[key] for key in ("seconds", "growth", "drift")})
        elif kind == "plant" and event.get("hits") is not None:
            self.plant_hits = (self.plant_hits or 0) + int(event["hits"])
        elif kind == "finished" and event.get("id") == "ceilings":
            self.ceilings, self.ceilings_of = dict(event["ceilings"]), dict(event["which"])
        elif kind == "finished" and "row" in event:
            self.rows[str(event["id"])] = dict(event["row"])
            self.hits_by_row[str(event["id"])] = event.get("plant_hits")

    @property
    def missing(self) -> tuple[str, ...]:
        """The rows of the plan without a report."""
        return tuple(row for row in self.plan if row not in self.rows)


def events_in(folder: Path) -> Iterator[Event]:
    """Yield what earlier children of this run reported; a line that a crash cut is passed over."""
    for path in sorted(folder.glob("rows.*.jsonl"), key=lambda path: int(path.name.split(".")[1])):
        for line in path.read_text(encoding="utf-8", errors="replace").splitlines():
            try:
                event = parse_json(line, finite=False)
            except ValueError:
                continue
            if isinstance(event, dict):
                yield event


def measure(
    request: MeasureRequest, measured: Measured, *, judge_text: JudgeText, on_event: Callable[[Event], None]
) -> None:
    """Measure every row that is not measured yet; a death costs its row, a memory shortage its batch."""
    lower: dict[str, int] = {}
    for number in range(_next_number(request.folder), _MOST_CHILDREN):
        sizes: dict[str, tuple[str, int]] = {}
        outcomes = request.folder / f"rows.{number}.jsonl"

        def take(event: Event, sizes: dict[str, tuple[str, int]] = sizes) -> None:
            if event.get("event") == "size":
                sizes[str(event["id"])] = (str(event["key"]), int(event["number"]))
            measured.take(event)
            on_event(event)

        end = run_child(
            _command(request, measured, outcomes, lower),
            log=request.folder / "measure.log",
            outcomes=outcomes,
            limits=request.limits,
            on_event=take,
        )
        _void(measured, end, judge_text, outcomes)
        if end.finished and end.exit == 0:
            return
        if end.exit == _REFUSED and not measured.plan:
            measured.refused = last_lines(end.output)
            return
        if end.running is None or end.running == "ceilings":
            measured.broken = f"{describe_end(end)}: {last_lines(end.output)}"
            return
        size = sizes.get(end.running)
        if _is_memory(end) and size is not None and size[1] > 1:
            lower[end.running] = size[1] // 2
            measured.notes.append(
                f"{end.running}: {size[0]} {size[1]} -> {size[1] // 2}: {describe_end(end)} (memory, it seems)"
            )
            continue
        _tell(outcomes, measured, end.running, _left_behind(end))


def _next_number(folder: Path) -> int:
    return 1 + max((int(path.name.split(".")[1]) for path in folder.glob("rows.*.jsonl")), default=0)


def _command(request: MeasureRequest, measured: Measured, outcomes: Path, lower: Mapping[str, int]) -> Command:
    argv = [str(request.interpreter), str(request.programme), "--device", request.device, "--out", str(outcomes)]
    argv += ["--quick"] if request.quick else []
    if request.deadline is not None:
        argv += ["--seconds", f"{max(0.0, request.deadline - time.monotonic()):.1f}"]
    argv += ["--only", ",".join(request.only)] if request.only else []
    argv += ["--skip", ",".join(measured.rows)] if measured.rows else []
    argv += ["--lower", ",".join(f"{row}={number}" for row, number in lower.items())] if lower else []
    argv += ["--ceilings", json.dumps(measured.ceilings)] if measured.ceilings else []
    argv += ["--plant", request.plant] if request.plant else []
    return Command(argv=tuple(argv), cwd=request.folder, environ=request.environ)


def _is_memory(end: ChildEnd) -> bool:
    """True where a process was ended for its memory: by us, or by the system's killer."""
    return end.cut == "memory" or (not end.cut and signal_name(end.exit) == "SIGKILL")


def _left_behind(end: ChildEnd) -> dict[str, Any]:
    said = f": {last_lines(end.output)}" if end.output.strip() else ""
    return {"outcome": "timeout" if end.cut == "timeout" else "crashed", "reason": f"{describe_end(end)}{said}"}


def _void(measured: Measured, end: ChildEnd, judge_text: JudgeText, outcomes: Path) -> None:
    """Withhold the ratio of a row during which the process wrote that the GPU dropped work."""
    for row_id, text in end.slices:
        category = judge_text(text, 0, None).category
        if category not in _VOIDING:
            continue
        row = measured.rows.get(row_id or "")
        if row is None:
            measured.notes.append(f"between the rows a process wrote [{category}]: {last_lines(text)}")
            continue
        flag = {"id": "gpu_fault", "text": f"while it ran, the process wrote [{category}]: {last_lines(text)}"}
        facts = {**row, "flags": [*row.get("flags", ()), flag], "ratio": None, "outcome": "untrusted"}
        _tell(outcomes, measured, row_id or "", facts)


def _tell(outcomes: Path, measured: Measured, row_id: str, facts: Mapping[str, Any]) -> None:
    """Add a row of our own to what the child reported, so that a resumed run knows of it too."""
    name, _, mode = row_id.partition(":")
    event = {"event": "finished", "id": row_id, "row": {"name": name, "mode": mode, "ratio": None, **facts}}
    with outcomes.open("a", encoding="utf-8") as file:
        file.write(json.dumps(event) + "\n")
    measured.take(event)
