"""The measuring programme: what it is to measure, its children, and what an interrupted run left behind."""

from __future__ import annotations

import hashlib
import json
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from mps_build.common.errors import UsageError
from mps_build.common.json_text import parse_json, read_json
from mps_build.common.process import Command

from .. import VerifyRequest
from ..record_builder import RecordBuilder
from ..suite.child import ChildEnd, run_child
from ..suite.outcomes import FAULT_EVENTS, JudgeText, describe_end, hits_in, last_lines, signal_name
from ..suite.request import Limits

# A --quick run stays under three minutes: what is left of them when the machine was looked at and torch imported.
QUICK_SECONDS = 135.0


@dataclass(frozen=True, slots=True, kw_only=True)
class BenchmarkRequest(VerifyRequest):
    """What to measure, on what. `only` names rows (`resnet50`, or `resnet50:training`)."""

    quick: bool = False
    fresh: bool = False

    def selection(self) -> dict[str, Any]:
        """Return what was chosen."""
        return {"quick": self.quick, "only": list(self.only), "inject": self.fault}

    def statement(self, gpu: Mapping[str, Any]) -> str:
        """Return the first line of every report: what this run can and cannot say."""
        name = gpu.get("name") or self.device
        part = "Reduced shapes (--quick): not the announced ones. " if self.quick else ""
        if self.only:
            part += "Chosen rows. "
        if self.fault:
            part = f"A fault was injected ({self.fault}). {part}"
        if self.device == "mps":
            return f"{part}MPS on {name}, against the CPU of this machine." if gpu else f"{part}MPS, not reached."
        if self.device == "cpu":
            return f"{part}A rehearsal, CPU against CPU: it says nothing about MPS, and every ratio should read 1.0."
        return f"{part}A rehearsal on another accelerator ({name}): it says nothing about MPS."


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
    fault: str | None = None


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
    fault_hits: int | None = None
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
        elif kind in FAULT_EVENTS and event.get("hits") is not None:
            self.fault_hits = (self.fault_hits or 0) + int(event["hits"])
        elif kind == "finished" and event.get("id") == "ceilings":
            self.ceilings, self.ceilings_of = dict(event["ceilings"]), dict(event["which"])
        elif kind == "finished" and "row" in event:
            self.rows[str(event["id"])] = dict(event["row"])
            self.hits_by_row[str(event["id"])] = hits_in(event)

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
    argv += ["--inject", request.fault] if request.fault else []
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


_CIRCUMSTANCES = "circumstances.json"


def circumstances(builder: RecordBuilder, request: BenchmarkRequest, programme: Path) -> dict[str, Any]:
    """Return what must be equal for rows of two sessions to stand in one record."""
    wheel, fault = builder.torch.wheel, request.fault
    return {
        "target": {**request.named_target(), "sha256": wheel.sha256 if wheel else None},
        "torch": [builder.torch.version, builder.torch.commit],
        "python": [builder.python.executable, builder.python.version] if builder.python else None,
        "device": [request.device, builder.gpu.get("name")],
        "macos": builder.host.get("macos"),
        "environment": dict(builder.environment.get("kept", {})),
        "selection": request.selection(),
        "inject": _digest([Path(fault.rpartition(":")[0])]) if fault else None,
        "programme": _digest(sorted(programme.parent.rglob("*.py"))),
    }


def key_of(found: Mapping[str, Any]) -> str:
    """Return the name of a folder for these circumstances."""
    return hashlib.sha256(json.dumps(found, sort_keys=True).encode()).hexdigest()[:16]


def left_behind(folder: Path, found: Mapping[str, Any], *, fresh: bool) -> Iterator[Event]:
    """Make the folder ready and yield what an interrupted run reported; a finished one is put aside.

    Raises:
        UsageError: the folder holds a benchmark of something else.
    """
    folder.mkdir(parents=True, exist_ok=True)
    kept = folder / _CIRCUMSTANCES
    before = read_json(kept) if kept.is_file() else None
    if before is not None and before != found:
        differing = ", ".join(sorted(name for name in found if before.get(name) != found[name]))
        raise UsageError(
            f"--record {folder}: holds a benchmark of something else ({differing} differ)", hint="name another folder"
        )
    if before is not None and (fresh or not _is_partial(folder)):
        _put_aside(folder)
    kept.write_text(json.dumps(found, indent=1) + "\n", encoding="utf-8")
    yield from events_in(folder)


def _is_partial(folder: Path) -> bool:
    try:
        document = read_json(folder / "record.json")
    except (OSError, ValueError):
        return True
    return not isinstance(document, dict) or bool(document.get("partial"))


def _put_aside(folder: Path) -> None:
    for path in (*folder.glob("rows.*.jsonl"), folder / "measure.log"):
        path.unlink(missing_ok=True)
    record = folder / "record.json"
    if record.is_file():
        record.replace(folder / "record.before.json")


def _digest(files: list[Path]) -> str:
    digest = hashlib.sha256()
    for file in files:
        digest.update(file.name.encode() + b"\0" + (file.read_bytes() if file.is_file() else b""))
    return digest.hexdigest()
