"""Before any case: can a verdict be had here at all? If not, which of the causes it is."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from packaging.version import Version

from mps_build.common.errors import (
    BuildEnvironmentError,
    DeviceUnusable,
    HostError,
    MacosTooOld,
    MpsBuildError,
    MpsNotBuilt,
    NoGpuSession,
    RosettaError,
    VirtualGpu,
)
from mps_build.common.json_text import parse_json
from mps_build.common.known_issues import is_too_old, macos_floor, said_floor
from mps_build.common.process import Captured, Command, capture

from ...host.host import observe
from ...host.probes.probers import LiveProber, RecordedProber, recorded
from ..suite.outcomes import Judgement, JudgeText, last_lines, signal_name

PROBE = Path(__file__).with_name("device_probe.py")
# Importing torch from a cold disk, its libraries scanned one by one by the system, may take minutes.
_PROBE_SECONDS = 240.0
_REHEARSE = "`--device cpu` rehearses the suite here, and says nothing about MPS"


@dataclass(frozen=True, slots=True, kw_only=True)
class HostFacts:
    """What is known of the machine; None is "not known". One that simulates MPS answers as a macOS, and is none."""

    system: str
    macos: str | None = None
    chip: str | None = None
    virtual: bool | None = None
    rosetta: bool | None = None
    apple_silicon: bool | None = None
    simulates_mps: bool = False
    document: Mapping[str, Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class ProbeFacts:
    """What the torch under test said, stage by stage; a stage that is missing was not reached."""

    stages: Mapping[str, Mapping[str, Any]]
    exit: int | None
    text: str

    def get(self, stage: str, key: str) -> Any:
        """Return a value that a stage of the probe wrote; None if it did not come so far."""
        return self.stages.get(stage, {}).get(key)

    @property
    def torch(self) -> str | None:
        """The version of the imported torch; None if the import failed."""
        version = self.get("import", "torch")
        return str(version) if version else None


def probe(python: Path, device: str, *, environ: Mapping[str, str], folder: Path) -> ProbeFacts:
    """Return what a child with the torch under test says of the device."""
    command = Command(argv=(str(python), str(PROBE), device), cwd=folder, environ=environ)
    return read_probe(capture(command, timeout_seconds=_PROBE_SECONDS))


def read_probe(answer: Captured) -> ProbeFacts:
    """Return the stages out of what the probe wrote."""
    stages: dict[str, Mapping[str, Any]] = {}
    for line in answer.stdout.splitlines():
        try:
            event = parse_json(line, finite=False)
        except ValueError:
            continue
        if isinstance(event, dict) and "stage" in event:
            stages[str(event["stage"])] = event
    return ProbeFacts(stages=stages, exit=answer.exit, text=answer.stderr)


def host_obstacle(host: HostFacts, device: str, torch: str | None) -> MpsBuildError | None:
    """Return what forbids a verdict already by the machine, or None. `torch` is the version if it is known yet."""
    if device != "mps":
        return None
    if host.system != "Darwin" and not host.simulates_mps:
        return HostError(f"not verified: this is {host.system}; MPS exists on macOS only", hint=_REHEARSE)
    if host.rosetta:
        return _rosetta()
    if host.apple_silicon is False:
        return HostError("not verified: this Mac has an Intel CPU; the wheels are for Apple silicon", hint=_REHEARSE)
    if torch and host.macos and _is_too_old(host.macos, torch):
        return _too_old(host.macos, torch)
    if host.virtual:
        return _virtual(f"this is a virtual machine ({host.chip or 'chip unknown'})")
    return None


def torch_obstacle(facts: ProbeFacts, host: HostFacts, device: str, judge_text: JudgeText) -> MpsBuildError | None:
    """Return what forbids a verdict by what the torch under test said, or None."""
    if facts.torch is None:
        return _no_import(facts, host, judge_text)
    if device == "mps" and host.system == "Darwin" and facts.get("python", "machine") == "x86_64":
        return _rosetta()
    if not facts.get("device", "built"):
        return _not_built(facts, device)
    if device == "mps" and (obstacle := host_obstacle(host, device, facts.torch)):
        return obstacle
    if "paravirtual" in str(facts.get("device", "name") or "").lower():
        return _virtual(f"the GPU is {facts.get('device', 'name')!r}")
    if not facts.get("device", "available"):
        return _unavailable(facts, host, device)
    return _no_compute(facts, judge_text)


def _rosetta() -> MpsBuildError:
    return RosettaError(
        "not verified: this Python is for Intel and runs under Rosetta, where MPS seems to work and computes wrongly",
        hint="use an arm64 Python: `arch -arm64 python3`, or one whose platform.machine() is arm64",
    )


def _too_old(macos: str, torch: str) -> MpsBuildError:
    floor, said = macos_floor(torch), said_floor(torch)
    differs = "" if said == floor else f" (its own message says {said}, which is not enough)"
    return MacosTooOld(
        f"not verified: this is macOS {macos}; MPS of torch {torch} needs {floor}{differs}",
        hint=f"update macOS to {floor} or later, or take an older torch",
    )


def _virtual(why: str) -> MpsBuildError:
    return VirtualGpu(
        f"not verified: {why}; its GPU gives other results than a real Mac",
        hint="verify on a real Mac; --allow-virtual runs the cases anyway, without a verdict",
    )


def _no_import(facts: ProbeFacts, host: HostFacts, judge_text: JudgeText) -> MpsBuildError:
    said = facts.get("import", "error")
    how = signal_name(facts.exit) or ("no end within minutes" if facts.exit is None else f"exit {facts.exit}")
    text = str(said) if said else f"the process died with {how}: {last_lines(facts.text)}"
    judged = judge_text(f"{text}\n{facts.text}", facts.exit, signal_name(facts.exit))
    if judged.category == "wrong_architecture" and host.system == "Darwin" and host.apple_silicon:
        return RosettaError(f"not verified: torch cannot be imported: {text}", hint="use an arm64 Python and wheel")
    category = "" if judged.category in ("unknown", "noise") else f" [{judged.category}]"
    return BuildEnvironmentError(
        f"not verified: torch cannot be imported{category}: {text}",
        hint="`nox -s audit_wheel` shows what is wrong with a wheel; `nox -s triage` explains the text",
    )


def _not_built(facts: ProbeFacts, device: str) -> MpsBuildError:
    if device == "mps":
        return MpsNotBuilt(
            f"not verified: torch {facts.torch} was built without MPS (torch.backends.mps.is_built() is False)",
            hint="build it with USE_MPS=1 (`nox -s build_wheel`), or take the official wheel for macOS arm64",
        )
    return HostError(f"not verified: torch {facts.torch} was built without {device}", hint=_REHEARSE)


def _unavailable(facts: ProbeFacts, host: HostFacts, device: str) -> MpsBuildError:
    if device != "mps":
        return HostError(f"not verified: torch {facts.torch} sees no {device} device here", hint=_REHEARSE)
    floor = macos_floor(facts.torch or "")
    enough = (
        f"macOS {host.macos} is new enough for it ({floor})" if host.macos and floor else "macOS may not be to blame"
    )
    return NoGpuSession(
        f"not verified: torch {facts.torch} was built with MPS and sees no device: {enough}, so it is a sandbox, "
        "a container, or a session without the GPU",
        hint="run it in a terminal of the logged-in user, outside any sandbox; `nox -s doctor` looks at the session",
    )


def _no_compute(facts: ProbeFacts, judge_text: JudgeText) -> MpsBuildError | None:
    reached = "compute" in facts.stages
    wrong = facts.get("compute", "wrong")
    text = f"{wrong or ''}\n{facts.text}"
    judged = judge_text(text, facts.exit, signal_name(facts.exit))
    if judged.category == "virtual_gpu_unusable":
        return _virtual("the GPU gives no buffers, as a virtual machine's does")
    if reached and wrong is None and facts.exit == 0 and judged.category not in ("gpu_fault", "gpu_timeout"):
        return None
    how = signal_name(facts.exit) or f"exit {facts.exit}"
    said = wrong or (f"the probe died with {how}" if facts.exit else "the probe wrote of a fault")
    return DeviceUnusable(
        f"not verified: the device exists, but does not compute [{judged.category}]: {said}"
        + (f": {last_lines(facts.text)}" if facts.text.strip() else ""),
        hint="close other GPU programs, let it cool down, restart the Mac, then run the same command again",
    )


def _is_too_old(macos: str, torch: str) -> bool:
    try:
        Version(macos)
    except ValueError:
        return False
    return is_too_old(macos, torch)


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
        from ...host.triage.device_texts import classify_device_text

        return classify_device_text(text, exit=exit_code, signal=signal_name, host=known)

    return judge


def _known(state: bool | str) -> bool | None:
    return state if isinstance(state, bool) else None
