"""Two processes on one MPS device: the libraries' pages say that it does not work; it must say so itself, clearly."""

from __future__ import annotations

from mps_build.common.records.device_record import Case, Result

from .child_report import ChildReport
from .workloads import Workload

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
