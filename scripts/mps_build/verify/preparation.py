"""What comes before anything runs on the device: the machine, the Python and the torch under test are looked at."""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import dataclass, replace
from datetime import datetime
from pathlib import Path

from mps_build.common.console import Console
from mps_build.common.environment import fetch_environ
from mps_build.common.errors import HostError, MacosTooOld, MpsBuildError, MpsNotBuilt, OwnFault
from mps_build.common.records.device_record import Python, Torch
from mps_build.common.workspace import cache_folder, work_folder

from .record_builder import RecordBuilder
from .request import VerifyRequest
from .target import diagnosis
from .target.diagnosis import HostFacts, ProbeFacts, judge_text_on, observe_host, recorded_line, simulated_host
from .target.environments import EnvironmentStore
from .target.resolve import Target, wanted_version


@dataclass(frozen=True, slots=True, kw_only=True)
class Prepared:
    """A torch that can be tested: on which machine, in which Python, what it said, and whether its GPU is virtual."""

    host: HostFacts
    target: Target
    facts: ProbeFacts
    virtual: bool


def prepare(
    request: VerifyRequest,
    *,
    builder: RecordBuilder,
    folder: Path,
    console: Console,
    make_target: Callable[[EnvironmentStore], Target],
) -> Prepared:
    """Look at the machine, then at the Python under test and its torch; the builder takes in what is found.

    Raises:
        MpsBuildError: one of them cannot be used; the builder holds what was found until then.
    """
    host = observe_host(request.host_file)
    if request.python and request.host_file is None:
        host = replace(host, rosetta=None)  # that is said of our own Python; the probe asks the one under test
    builder.host = host.document
    if request.simulated is not None:
        host = simulated_host(host, macos=request.simulated.macos)
    if request.host_file is not None:
        console.print(recorded_line(request.host_file))
    # --allow-virtual runs the cases, without a verdict.
    judged = replace(host, virtual=None) if request.allow_virtual and host.virtual else host
    with console.step("Check the machine"):
        refuse(diagnosis.host_obstacle(judged, request.device, wanted_version(request)))
        refuse(_only_recorded(request))
    with console.step("Prepare the Python under test"):
        target = make_target(_store(request, folder, console))
    with console.step("Check torch and its device"):
        facts = _ask_torch(request, target, builder, folder)
        obstacle = diagnosis.torch_obstacle(facts, judged, request.device, judge_text_on(host, facts.torch))
        if obstacle is not None and request.simulated is not None and request.simulated.official:
            raise _ours(obstacle)
        if obstacle is not None and not (request.allow_virtual and obstacle.cause == "virtual_gpu"):
            raise obstacle
        console.line(f"torch {facts.torch} on {facts.get('device', 'name') or request.device}")
    return Prepared(host=host, target=target, facts=facts, virtual=bool(host.virtual) or obstacle is not None)


def run_folder(request: VerifyRequest, started: datetime) -> Path:
    """Return the folder of a run: the one that was named, or one of its own."""
    own = work_folder() / "verify" / f"{started:%Y%m%dT%H%M%S}-{request.device}-{os.getpid()}"
    return (request.folder or own).absolute()


def refuse(obstacle: MpsBuildError | None) -> None:
    """Raise what stands in the way, if anything does."""
    if obstacle is not None:
        raise obstacle


def _ours(obstacle: MpsBuildError) -> MpsBuildError:
    """Return what stands in the way of a macOS wheel on Linux: all below it is ours, so nothing follows about it."""
    if isinstance(obstacle, MacosTooOld | MpsNotBuilt):
        return obstacle
    return OwnFault(
        f"the simulation cannot run this wheel, and nothing follows about it: {obstacle}",
        hint="please report it with the whole output",
    )


def _only_recorded(request: VerifyRequest) -> MpsBuildError | None:
    if request.host_file is None:
        return None
    return HostError(
        f"not verified: {request.host_file} is a recording; nothing on that Mac prevents verification, "
        "but a recording cannot run it",
        hint="run the same command, without --host, on the Mac itself",
    )


def _store(request: VerifyRequest, folder: Path, console: Console) -> EnvironmentStore:
    return EnvironmentStore(
        cache=cache_folder() / "verify",
        environ={**fetch_environ(os.environ), "PYTHONDONTWRITEBYTECODE": "1"},
        log=folder / "pip.log",
        reporter=console,
        offline=request.offline,
        trust=request.trust,
        wants_cuda=request.device.startswith("cuda"),
    )


def _ask_torch(request: VerifyRequest, target: Target, builder: RecordBuilder, folder: Path) -> ProbeFacts:
    folder.mkdir(parents=True, exist_ok=True)
    builder.target = target.document
    builder.environment = {"kept": dict(target.environ.kept), "removed": dict(target.environ.removed)}
    builder.python = Python(
        executable=str(target.interpreter.executable),
        version=target.interpreter.version,
        machine=target.interpreter.machine,
    )
    facts = diagnosis.probe(
        target.interpreter.executable, request.device, environ=target.environ.variables, folder=folder
    )
    commit = facts.get("import", "commit")
    known = None if commit == "Unknown" else commit  # tools/generate_torch_version.py, outside of a clone
    builder.torch = Torch(version=facts.torch, commit=known, wheel=target.wheel)
    builder.gpu = {key: value for key, value in facts.stages.get("device", {}).items() if key != "stage"}
    return facts
