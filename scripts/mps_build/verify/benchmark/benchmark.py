"""One benchmark in order: the machine, the Python, torch, the rows, the doubts, the record."""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from mps_build import __version__
from mps_build.common.console import Console
from mps_build.common.cores import usable_cores, within_quota
from mps_build.common.errors import BuildEnvironmentError, DeviceUnusable, MpsBuildError, UsageError
from mps_build.common.process import kept_awake
from mps_build.common.recipe.catalogue import data_root
from mps_build.common.records.benchmark import BenchmarkRecord, Flag, Row, SkippedRow
from mps_build.common.records.device_record import Concurrency, to_json, write_record
from mps_build.common.stopping import exit_status
from mps_build.common.workspace import work_folder

from ..preparation import prepare, run_folder
from ..record_builder import RecordBuilder
from ..suite.request import Limits, total_bytes
from ..target.diagnosis import HostFacts, judge_text_on
from ..target.environments import EnvironmentStore
from ..target.resolve import Target, prepare_target
from ..verdict import Judged
from .judging import (
    END_OF_INTERRUPTION,
    NOT_RECORDED,
    check_rows,
    is_caught,
    judge,
    run_flags,
    thermal_notes,
    thermal_state,
)
from .measuring import (
    QUICK_SECONDS,
    BenchmarkRequest,
    Event,
    Measured,
    MeasureRequest,
    circumstances,
    events_in,
    key_of,
    left_behind,
    measure,
)

_MEMORY_SHARE = 0.85


class Benchmark:
    """One run of the command: the machine, Python and torch as a verification prepares them, then rows."""

    def __init__(self, request: BenchmarkRequest, console: Console) -> None:
        self.request, self.console = request, console
        self.builder = RecordBuilder(target=request.named_target())
        self.folder = run_folder(request, self.builder.started)
        self.programme = data_root() / "benchmarks" / "device" / "measure.py"
        self.measured = Measured()
        self.thermal: dict[str, Any] = {"before": NOT_RECORDED, "after": NOT_RECORDED}
        self.row_thermal: dict[str, dict[str, Any] | str] = {}
        self.sessions: list[dict[str, Any]] = []
        self.keyed = False

    def measure(self) -> BenchmarkRecord:
        """Measure, and return the record; it lies in its folder too, from the first row on.

        Raises:
            MpsBuildError: nothing can be measured; its document is the record all the same.
            KeyboardInterrupt: the partial record is in its folder.
        """
        try:
            return self._measure()
        except MpsBuildError as error:
            judged = Judged(
                verdict="not_verified",
                exit_code=error.exit_code,
                cause=error.cause,
                message=str(error),
                hint=error.hint,
            )
            record = self._benchmark(judged, partial=bool(self.measured.rows))
            self.refused_record = self._keep(record)
            error.document = {**to_json(record), **error.document}
            raise
        except KeyboardInterrupt:
            for event in events_in(self.folder) if self.keyed else ():
                if event.get("event") in ("plan", "facts", "finished"):  # reported, and not read yet
                    self.measured.take(event)
            self._keep(self.interrupted())
            raise

    refused_record: BenchmarkRecord | None = None

    def interrupted(self) -> BenchmarkRecord:
        """Return the record of a run that was interrupted: partial, and labelled so."""
        return self._benchmark(replace(END_OF_INTERRUPTION, exit_code=exit_status()), partial=True)

    def _measure(self) -> BenchmarkRecord:
        request = self.request
        if not self.programme.is_file():
            raise UsageError(
                f"{self.programme}: the measuring program is missing",
                hint="reinstall mps-build: a file of it is missing",
            )
        request.check_fault()
        check_rows(request.only)
        prepared = prepare(
            request, builder=self.builder, folder=self.folder, console=self.console, make_target=self._make_target
        )
        self._resume()
        with self.console.step(f"Time {request.device} against the CPU"), kept_awake():
            self._rows(prepared.target, prepared.host)
        judged = judge(self._rows_found(), self._flags(), self.measured, device=request.device, fault=request.fault)
        return self._keep(self._benchmark(judged, partial=False))

    def _make_target(self, store: EnvironmentStore) -> Target:
        return prepare_target(self.request, store, pytest=False, extras=lambda wheel, python: ())

    def _rows(self, target: Target, host: HostFacts) -> None:
        request = self.request
        self.thermal["before"] = thermal_state()
        deadline = time.monotonic() + QUICK_SECONDS if request.quick else None
        self.console.started("Rows", unit="rows")
        measure(
            MeasureRequest(
                interpreter=target.interpreter.executable,
                programme=self.programme,
                environ=within_quota(target.environ.variables),
                folder=self.folder,
                device=request.device,
                limits=Limits(
                    case_seconds=170.0 if request.quick else 3600.0,
                    memory_bytes=request.memory_bytes or int(total_bytes() * _MEMORY_SHARE),
                ),
                quick=request.quick,
                deadline=deadline,
                only=request.only,
                fault=request.absolute_fault,
            ),
            self.measured,
            judge_text=judge_text_on(host, self.builder.torch.version),
            on_event=self._on_event,
        )
        self.console.done()
        self.thermal["after"] = thermal_state()
        if self.measured.refused is not None:
            raise UsageError(f"the measuring program refuses its options: {self.measured.refused}", hint=_FAULTS)
        if self.measured.broken is not None:
            raise self._broken(self.measured.broken)

    @staticmethod
    def _broken(said: str) -> MpsBuildError:
        if "ModuleNotFoundError" in said or "ImportError" in said:
            return BuildEnvironmentError(f"the measuring program cannot be run: {said}", hint=_PACKAGES)
        return DeviceUnusable(f"the measuring program died between rows: {said}", hint="run the same command again")

    def _on_event(self, event: Event) -> None:
        if event.get("event") != "finished":
            return
        if "row" in event:
            self.row_thermal[str(event["id"])] = thermal_state()
            self.console.advanced(len(self.measured.rows), total=len(self.measured.plan), note=str(event["id"]))
            self.console.line(one_line(event["row"]))
        self._keep(self.interrupted())

    def _resume(self) -> None:
        """Choose the folder, and take over what an interrupted run of the same thing measured."""
        found = circumstances(self.builder, self.request, self.programme)
        if self.request.folder is None:
            self.folder = work_folder() / "benchmark" / f"{self.request.device}-{key_of(found)}"
        for event in left_behind(self.folder, found, fresh=self.request.fresh):
            self.measured.take(event)
        self.keyed = True
        self.measured.sentinel.clear()  # of another session: the machine has cooled since
        if self.measured.rows:
            self.sessions.append({"rows": len(self.measured.rows), "note": "taken over from an interrupted run"})
            self.console.line(
                f"{len(self.measured.rows)} rows are taken from an interrupted run (--fresh starts again)"
            )
        self.sessions.append({"started": self.builder.started.isoformat(timespec="seconds")})

    # The record.

    def _rows_found(self) -> tuple[Row, ...]:
        return tuple(
            Row.model_validate({**facts, "thermal": self.row_thermal.get(name, NOT_RECORDED)})
            for name, facts in self.measured.rows.items()
            if facts.get("outcome") != "skipped"
        )

    def _flags(self) -> tuple[Flag, ...]:
        return run_flags(self.measured)

    def _benchmark(self, judged: Judged, *, partial: bool) -> BenchmarkRecord:
        request, builder, measured = self.request, self.builder, self.measured
        rows = self._rows_found()
        states = [self.thermal["before"], *(row.thermal for row in rows), self.thermal["after"]]
        caught = is_caught(rows, self._flags(), measured)
        is_injected = bool(request.fault) and not partial
        return BenchmarkRecord(
            tool=f"mps-build {__version__}",
            tool_version=__version__,
            statement=request.statement(builder.gpu),
            verdict=_verdict(judged),
            exit_code=judged.exit_code,
            cause=judged.cause,
            message=judged.message,
            hint=judged.hint,
            partial=partial,
            device=request.device,
            target=dict(builder.target),
            selection=request.selection(),
            torch=builder.torch,
            python=builder.python,
            host=dict(builder.host),
            gpu=dict(builder.gpu),
            cpu=_cpu(measured.facts),
            environment=dict(builder.environment),
            concurrency=Concurrency(cores=usable_cores(), processes=1, threads=int(measured.facts.get("threads") or 1))
            if measured.facts
            else None,
            ceilings=measured.ceilings,
            ceilings_of=measured.ceilings_of,
            thermal=self.thermal,
            sentinel=tuple(measured.sentinel),
            sessions=tuple(self.sessions),
            flags=self._flags(),
            fault=_fault_result(caught, measured, judged) if is_injected else None,
            fault_hits=measured.fault_hits,
            notes=(*builder.notes, *measured.notes, *_cpu_notes(_cpu(measured.facts)), *thermal_notes(states)),
            started=builder.started.isoformat(timespec="seconds"),
            seconds=round(time.monotonic() - builder.began, 2),
            rows=rows,
            skipped=tuple(
                SkippedRow(name=facts["name"], mode=facts["mode"], reason=str(facts.get("reason")))
                for facts in measured.rows.values()
                if facts.get("outcome") == "skipped"
            ),
            missing=measured.missing,
        )

    def _keep(self, record: BenchmarkRecord) -> BenchmarkRecord:
        # A refusal must not lie over the record of a run that measured something.
        if self.keyed or self.request.folder is None or not (self.folder / "record.json").exists():
            write_record(record, self.folder / "record.json")
        return record


def one_line(row: Mapping[str, Any]) -> str:
    """Return a row as one line of progress."""
    name = f"{row['name']} {row['mode']}"
    ratio = row.get("ratio")
    doubts = "".join(f"  {flag['id']}" for flag in row.get("flags", ()))
    if not ratio:
        return f"{name}: {row.get('outcome')}{doubts} {row.get('reason') or ''}".rstrip()[:200]
    return f"{name}: {ratio['median']:.2f} times the CPU ({ratio['low']:.2f} to {ratio['high']:.2f}){doubts}"


_FAULTS = "see docs/verify/injected_faults.md"
_PACKAGES = "it needs torch and Python's standard library; `nox -s audit_wheel` tells what is wrong with a wheel"


def _verdict(judged: Judged) -> Any:
    return {"verified": "measured", "regressed": "doubtful"}.get(judged.verdict, judged.verdict)


def _fault_result(caught: bool, measured: Measured, judged: Judged) -> Any:
    if measured.refused is not None or (judged.verdict == "not_verified" and not measured.rows):
        return "error"
    if caught:
        return "caught"
    return "not_exercised" if measured.fault_hits == 0 else "missed"


def _cpu(facts: Mapping[str, Any]) -> dict[str, Any]:
    """Return the CPU that the device is timed against; how many cores there are the programme need not know."""
    found = {key: facts.get(key) for key in ("threads", "cores", "cpu_bfloat16") if facts}
    return {**found, "cores": found.get("cores") or usable_cores()} if found else {}


def _cpu_notes(facts: Mapping[str, Any]) -> list[str]:
    threads, cores = facts.get("threads"), facts.get("cores")
    if not threads or not cores or threads * 2 >= cores:
        return []
    return [f"the CPU computed with {threads} of {cores} cores: ratios are larger than against all of them"]
