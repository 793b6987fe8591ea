"""From what the runs reported to the cases of training, of two processes, and of Accelerate's own commands."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import yaml

from mps_build.common import strict_yaml
from mps_build.common.files import read_text
from mps_build.common.process import Captured
from mps_build.common.records.device_record import Case, Result

from .children import ChildReport
from .request import Workload

# The CPU's own float32 is unusually good: plain sums elsewhere are up to so many times worse, and right.
CPU_MULTIPLE = 8.0
# Of the loss: a hundredfold of what float32 loses on its way through a small network; injected faults begin at 1e-2.
LOSS_FLOOR = 1e-3
# Rounding that grows from step to step must not widen the bound until it holds for anything.
LOSS_CEILING = 2e-2
GRADIENT_FLOOR = 1e-3
# A gradient that is zero but for rounding (of a key's bias, say) has the model's as its scale.
SMALLEST_SHARE = 1e-4


def judge_training(workload: Workload, device: str, device_run: ChildReport, cpu: ChildReport | None) -> list[Case]:
    """Return the cases of one training; a question whose figures are missing is skipped, never passed.

    Args:
        cpu: the reference run; None where the device run failed first.
    """
    build = _Cases(workload)
    build.add("runs", *_runs(device_run, cpu))
    build.add("device", *_device(device_run, device, "the device run"))
    if cpu is not None and workload.against is None:
        build.add("cpu", *_device(cpu, "cpu", "the reference run"))
    if device == "mps":
        build.add("fallback", *_fallback(device_run, allowed=workload.fallback))
    if workload.against is None:
        build.add("gradients", *_gradients(cpu))
    build.add("losses", *_losses(device_run, cpu))
    if workload.gate is not None:
        build.add("accuracy", *_accuracy(device_run, cpu, workload.gate))
    return build.cases


class _Cases:
    def __init__(self, workload: Workload) -> None:
        self.workload, self.cases = workload, list[Case]()

    def add(
        self, question: str, outcome: Result, reason: str = "", largest: float | None = None, bound: float | None = None
    ) -> None:
        self.cases.append(
            Case(
                id=f"{self.workload.name}-{question}",
                layer=self.workload.part,
                issue=self.workload.issues,
                outcome=outcome,
                reason=reason or None,
                largest=largest,
                bound=bound,
            )
        )


Answer = tuple[Any, ...]
_NOT_SO_FAR: Answer = ("skipped", "not compared: a run ended before that")


def _runs(run: ChildReport, cpu: ChildReport | None) -> Answer:
    for name, report in (("on the device", run), ("on the CPU", cpu)):
        if report is not None and report.trouble is not None:
            return report.outcome, f"{name}: {report.trouble}"
    if cpu is None:
        return "failed", "there was no reference run on the CPU"
    return ("passed",)


def _device(report: ChildReport, device: str, whose: str) -> Answer:
    """Hold that every tensor seen lay on the device, and that its allocator gave out at least the parameters."""
    seen = report.all("device")
    if not seen:
        return _NOT_SO_FAR
    for number, event in enumerate(seen, start=1):
        for what in ("parameters", "gradients", "batch", "loss"):
            names = event.get(what) or []
            found = [names] if isinstance(names, str) else list(names)
            if not found and what != "gradients":
                return "failed", f"{whose}: no {what} was seen (look {number})"
            elsewhere = [name for name in found if name.partition(":")[0] != device]
            if elsewhere:
                return "failed", f"{whose}: {what} on {', '.join(elsewhere)}, not on {device} (look {number})"
        given, needed = event.get("allocated_bytes"), event.get("parameter_bytes") or 0
        if device != "cpu" and given is not None and given < needed:
            return "failed", f"{whose}: {device}'s allocator gave out {given} bytes, the parameters alone are {needed}"
    last = seen[-1]
    given = last.get("allocated_bytes")
    allocated = f"{given} bytes allocated" if given is not None else "this torch's allocator does not say how much"
    return "passed", "" if device == "cpu" else f"{last.get('parameter_bytes')} bytes of parameters, {allocated}"


def _fallback(run: ChildReport, *, allowed: bool) -> Answer:
    """Hold that nothing fell back to the CPU where the variable was not set; where it was, say what did."""
    fallbacks = run.last("fallbacks")
    session = run.last("session")
    if fallbacks is None or session is None:
        return _NOT_SO_FAR
    if bool(session.get("fallback")) != allowed:
        return "failed", f"PYTORCH_ENABLE_MPS_FALLBACK was {session.get('fallback')!r} in the process"
    operators = list(fallbacks.get("operators") or ())
    if operators and not allowed:
        return "failed", f"fell back to the CPU without being allowed to: {'; '.join(operators)[:500]}"
    return "passed", f"fell back: {'; '.join(operators)[:500]}" if operators else "nothing fell back"


def _gradients(cpu: ChildReport | None) -> Answer:
    gradients = cpu.last("gradients") if cpu is not None else None
    figures: Mapping[str, Mapping[str, Any]] = (gradients or {}).get("parameters") or {}
    if not figures:
        return _NOT_SO_FAR
    widest = max(_number(row["scale"]) for row in figures.values())
    nearest: tuple[float, float, float] = (-1.0, 0.0, 0.0)
    for name, row in reversed(list(figures.items())):
        if row["device"] is None or row["cpu"] is None:
            return (
                "failed",
                f"{name}: no gradient of that shape on {'the device' if row['device'] is None else 'the CPU'}",
            )
        off, own = _number(row["device"]), _number(row["cpu"])
        scale = max(_number(row["scale"]), SMALLEST_SHARE * widest)
        bound = max(CPU_MULTIPLE * own, GRADIENT_FLOOR * scale)
        if not off <= bound:
            reason = f"first step, gradient of {name}: off by {off:.3g} of at most {scale:.3g}, allowed {bound:.3g}"
            return "failed", reason, *_finite(off, bound)
        share = off / bound if bound else 0.0
        nearest = max(nearest, (share, off, bound))
    return "passed", f"{len(figures)} parameters", nearest[1], nearest[2]


def _losses(run: ChildReport, cpu: ChildReport | None) -> Answer:
    """Compare the first steps' losses, if all runs saw the same batches."""
    ours, theirs = run.last("losses"), cpu.last("losses") if cpu is not None else None
    reference = cpu.last("reference") if cpu is not None else None
    if ours is None:
        partial = [_number(event.get("loss")) for event in run.all("step")]
        bad = next((number for number, loss in enumerate(partial, start=1) if not math.isfinite(loss)), None)
        return ("failed", f"step {bad}: the loss is {partial[bad - 1]}") if bad else _NOT_SO_FAR
    if theirs is None or reference is None:
        return _NOT_SO_FAR
    if ours["batches"] != theirs["batches"] or ours["batches"] != reference["batches"]:
        return "failed", "the runs were given different batches: their losses cannot be compared"
    rows = [[_number(value) for value in losses["losses"]] for losses in (ours, theirs, reference)]
    if not rows[0] or len({len(row) for row in rows}) != 1:
        return "failed", f"so many losses each: {', '.join(str(len(row)) for row in rows)}"
    return compare_losses(*rows)


def compare_losses(device: Sequence[float], cpu: Sequence[float], reference: Sequence[float]) -> Answer:
    """Return the answer for three equally long rows of losses: the device's, the CPU's, and float64's.

    The bound of a step: 8 x the CPU's worst error against float64 so far, at least the floor, at most the ceiling.
    """
    worst = 0.0
    nearest = (-1.0, 0.0, 0.0)
    for step, (ours, theirs, true) in enumerate(zip(device, cpu, reference, strict=True), start=1):
        if not math.isfinite(ours):
            return "failed", f"step {step}: the loss is {ours}, on the CPU {theirs:.5f}"
        worst = max(worst, abs(theirs - true))
        bound = min(max(CPU_MULTIPLE * worst, LOSS_FLOOR * abs(true)), LOSS_CEILING * abs(true))
        off = abs(ours - true)
        if not off <= bound:
            reason = (
                f"step {step}: loss {ours:.6f}, in float64 {true:.6f}, on the CPU {theirs:.6f}, allowed ±{bound:.2g}"
            )
            return "failed", reason, *_finite(off, bound)
        nearest = max(nearest, (off / bound if bound else 0.0, off, bound))
    return "passed", f"{len(device)} steps", nearest[1], nearest[2]


def _accuracy(run: ChildReport, cpu: ChildReport | None, gate: float) -> Answer:
    ours, theirs = run.last("accuracy"), cpu.last("accuracy") if cpu is not None else None
    if ours is None or theirs is None:
        return _NOT_SO_FAR
    value, other, count = _number(ours["value"]), _number(theirs["value"]), int(ours["count"])
    said = f"{value:.3f} of {count} on the device, {other:.3f} on the CPU, at least {gate}"
    if not other >= gate:
        return "failed", f"{said}: the CPU itself learnt too little, so this proves nothing of the device"
    return ("passed" if value >= gate and count > 0 else "failed"), said


def _number(value: Any) -> float:
    try:
        return float(value)
    except (TypeError, ValueError):
        return math.nan


def _finite(off: float, bound: float) -> tuple[float | None, float]:
    return (off if math.isfinite(off) else None), bound


# What torch and Accelerate say where they refuse, read in their sources and in reports from Macs:
# https://github.com/pytorch/pytorch/issues/149537 (no default backend), /160732 (gloo does not take mps tensors).
_REFUSALS = (
    "communication backend to use",
    "no backend type associated with device type mps",
    "invalid tensor type",
    "invalid device",
    "doesn't have nccl built in",
    "does not have nccl built in",
    "not supported on mps",
    "does not support mps",
    "doesn't support mps",
    "can't set device for",
    "unsupported device",
    "torch not compiled with cuda enabled",
)


def not_applicable(workload: Workload, device: str) -> Case:
    """Return the case where the device is another: the limit is one of MPS."""
    reason = f"not applicable: the limit of one process is MPS's, this is {device}"
    return Case(id=workload.name, layer=workload.part, outcome="skipped", reason=reason)


def judge_processes(workload: Workload, report: ChildReport, text: str) -> Case:
    """Return the case from what the two processes reported and wrote.

    A limit that no longer holds is not a failure: two processes that really sum their tensors are an unexpected pass.
    """
    outcome, reason = _judge(report, text)
    return Case(id=workload.name, layer=workload.part, outcome=outcome, reason=reason)


def _judge(report: ChildReport, text: str) -> tuple[Result, str]:
    joined, reduced, refused = report.all("joined"), report.all("reduced"), report.all("refused")
    apart = [event for event in joined if event.get("processes") == 1]
    alone = f"; Accelerate took {len(apart)} of them for single processes" if apart and len(joined) > 1 else ""
    elsewhere = sorted({str(event["device"]) for event in joined if not str(event.get("device", "")).startswith("mps")})
    if refused or (report.trouble and not reduced):
        said = [str(event.get("message", "")) for event in refused]
        clear = next((line for line in (*said, text) if is_refusal(line)), None)
        if clear is not None:
            return "passed", f"refused: {_sentence(clear)}{alone}"
        if report.outcome == "timeout":
            return "timeout", "two processes hang, and nothing is said"
        return (
            "failed",
            f"two processes end, and no clear reason is said: {(said or [report.trouble or ''])[0][:500]}{alone}",
        )
    if elsewhere:
        return "failed", f"no refusal: the processes ran on {', '.join(elsewhere)} without a word"
    sums = [event.get("sum") for event in reduced]
    if len(sums) == 2 and sums == [3.0, 3.0]:
        return "unexpected_pass", f"two processes summed their tensors on MPS: the announced limit is gone{alone}"
    return "failed", f"no refusal, and the sums over two processes are {sums}, not [3.0, 3.0]{alone}"


def is_refusal(text: str) -> bool:
    """True for a text that says that this device does not do it."""
    lower = text.lower()
    return any(words in lower for words in _REFUSALS)


def _sentence(text: str) -> str:
    line = next((line for line in text.splitlines() if is_refusal(line)), text)
    return " ".join(line.split())[:400]


LAYER = "accelerate"


def judge_env(answer: Captured) -> Case:
    """Return the case of `accelerate env`: it must end well and name the torch that it sees."""
    if answer.timed_out:
        return _case("accelerate-env", "timeout", "no answer in time")
    if not answer.ok:
        return _case("accelerate-env", "failed", f"exit {answer.exit}: {answer.stderr.strip()[-500:]}")
    if "PyTorch" not in answer.stdout or "Accelerate" not in answer.stdout:
        return _case("accelerate-env", "failed", f"it names neither PyTorch nor itself: {answer.stdout.strip()[:300]}")
    return _case("accelerate-env", "passed", "")


def read_config(home: Path) -> tuple[Path, dict[str, Any]] | None:
    """Return the file that `accelerate config default` wrote into a Hugging Face home, and what it says."""
    for path in sorted((home / "accelerate").glob("default_config.*")):
        try:
            said = strict_yaml.unchecked(read_text(path))  # JSON is YAML too
        except (OSError, UnicodeDecodeError, yaml.YAMLError):
            continue
        if isinstance(said, dict):
            return path, said
    return None


def judge_config(answer: Captured, config: dict[str, Any] | None, device: str) -> Case:
    """Return the case of `accelerate config default`: with what it writes, a launch must use the device."""
    name = "accelerate-config-default"
    if answer.timed_out:
        return _case(name, "timeout", "no answer in time")
    if not answer.ok or config is None:
        said = (answer.stderr.strip() or answer.stdout.strip())[-500:]
        return _case(name, "failed", f"exit {answer.exit}, no readable default_config in its home: {said}")
    if device != "cpu" and config.get("use_cpu"):
        return _case(name, "failed", f"it writes `use_cpu: true`: a launch with it stays on the CPU, not on {device}")
    if config.get("distributed_type") not in ("NO", "MPS", None) and device == "mps":
        return _case(name, "failed", f"distributed_type {config['distributed_type']} on one MPS device")
    return _case(name, "passed", f"use_cpu {str(config.get('use_cpu')).lower()}")


def launch_config(config: dict[str, Any], *, device: str) -> dict[str, Any]:
    """Return the config that the launches take: the default's, with the device on as the questionnaire would put it."""
    return {**config, "use_cpu": device == "cpu", "num_processes": 1, "distributed_type": "NO", "num_machines": 1}


def write_launch_config(config: dict[str, Any], path: Path, *, device: str) -> Path:
    """Write that config, as JSON, which every version reads."""
    path.write_text(json.dumps(launch_config(config, device=device), indent=1) + "\n", encoding="utf-8")
    return path


def _case(name: str, outcome: Result, reason: str) -> Case:
    return Case(id=name, layer=LAYER, outcome=outcome, reason=reason or None)
