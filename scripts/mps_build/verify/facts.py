"""What other parts of the tool know, as the verification asks for it: the host, what a text means, a wheel's kind."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

from ..host.host import observe
from ..host.probes.probers import LiveProber, RecordedProber
from ..host.recordings.scrub import recorded
from .suite.run import Judgement, JudgeText
from .target.diagnosis import HostFacts


def observe_host(recording: Path | None) -> HostFacts:
    """Return what is known of this machine, or of a recorded one."""
    prober = LiveProber() if recording is None else RecordedProber(recording)
    host = observe(prober)
    metal = next((gpu["metal"] for gpu in host.first("gpus") or () if gpu.get("metal")), None)
    return HostFacts(
        system=host.system,
        macos=host.macos,
        chip=host.chip,
        virtual=_known(host.virtual),
        rosetta=_known(host.rosetta),
        apple_silicon=_known(host.apple_silicon),
        document={**host.document(), "metal": metal, "host_recording": recorded(prober)[0]},
    )


def simulated_host(host: HostFacts, *, macos: str) -> HostFacts:
    """Return the machine that a simulated device answers as: a macOS, and no chip."""
    return replace(host, macos=macos, chip=None, virtual=None, rosetta=None, apple_silicon=None, simulates_mps=True)


def recorded_line(recording: Path) -> str:
    """Return what is said first of all that is judged on a recorded host."""
    return f"recorded on {RecordedProber(recording).recorded_on}"


def judge_text_on(host: HostFacts, torch: str | None) -> JudgeText:
    """Return triage's classifier of device texts, given what is known of the machine."""
    facts: dict[str, Any] = {
        "macos": host.macos,
        "torch": torch,
        "virtual": host.virtual,
        "rosetta": host.rosetta,
        "chip": host.chip,
    }
    known = {name: value for name, value in facts.items() if value is not None}

    def judge(text: str, exit_code: int | None, signal_name: str | None) -> Judgement:
        from ..host.triage.device_texts import classify_device_text

        return classify_device_text(text, exit=exit_code, signal=signal_name, host=known)

    return judge


def audited_kind(wheel: Path) -> str | None:
    """Return the audit's word for how a macOS wheel gets its Metal kernels: `aot`, `jit` or `off`; else None."""
    from ..inspection.audit import audit_wheel

    return audit_wheel(wheel, quick=True).kind if "macosx" in wheel.name else None


def _known(state: bool | str) -> bool | None:
    return state if isinstance(state, bool) else None
