"""What is requested: a torch and a device as `verify_mps` takes them, and the workloads to run with it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any, Literal

from mps_build.common.errors import UsageError
from mps_build.common.files import fault_of

from .. import VerifyRequest

PARTS = ("accelerate", "transformers")
Kind = Literal["accelerate", "training", "cases", "processes"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Workload:
    """One workload; its cases' ids begin with its name.

    `kind`: `accelerate` asks the command itself; `training` is a script with a run on the device and one on the CPU;
    `cases` judge themselves; `processes` is the limit of one process on MPS. `launched` is by `accelerate launch`.
    `gate` is the accuracy that both runs must reach. `against` names the workload whose CPU run is compared with,
    `steps` how many steps are trained then.
    """

    name: str
    part: str
    kind: Kind
    script: str = ""
    launched: bool = False
    gate: float | None = None
    fallback: bool = False
    against: str | None = None
    steps: int | None = None
    issues: tuple[str, ...] = ()


WORKLOADS = (
    Workload(name="accelerate-command", part="accelerate", kind="accelerate"),
    Workload(
        name="accelerate-vision",
        part="accelerate",
        kind="training",
        script="accelerate_vision.py",
        launched=True,
        gate=0.95,
    ),
    Workload(
        name="accelerate-paraphrase",
        part="accelerate",
        kind="training",
        script="accelerate_paraphrase.py",
        launched=True,
        gate=0.95,
        issues=("82707",),
    ),
    Workload(name="accelerate-two-processes", part="accelerate", kind="processes", script="two_processes.py"),
    Workload(
        name="transformers-trainer",
        part="transformers",
        kind="training",
        script="trainer_paraphrase.py",
        gate=0.95,
        issues=("82707",),
    ),
    Workload(
        name="transformers-trainer-fallback",
        part="transformers",
        kind="training",
        script="trainer_paraphrase.py",
        fallback=True,
        against="transformers-trainer",
        steps=20,
    ),
    Workload(name="transformers-generate", part="transformers", kind="cases", script="generate.py"),
    Workload(name="transformers-architectures", part="transformers", kind="cases", script="architectures.py"),
)
REAL_WEIGHTS = Workload(name="transformers-real-weights", part="transformers", kind="cases", script="architectures.py")
# The user's own program, watched by ours.
SCRIPT = Workload(name="script", part="script", kind="training", script="user_program.py")
COMPARED_STEPS = 20


@dataclass(frozen=True, slots=True, kw_only=True)
class TrainingRequest(VerifyRequest):
    """A verification of training. `only` names workloads; `accelerate` and `transformers` are requested versions."""

    parts: tuple[str, ...] = PARTS
    accelerate: str | None = None
    transformers: str | None = None
    real_weights: Path | None = None
    script: Path | None = None
    script_arguments: tuple[str, ...] = ()

    @property
    def chosen_versions(self) -> dict[str, str]:
        """The versions that the caller chose, by library."""
        versions = {"accelerate": self.accelerate, "transformers": self.transformers}
        return {name: version for name, version in versions.items() if version}

    def workloads(self) -> tuple[Workload, ...]:
        """Return what is to be run, in order.

        Raises:
            UsageError: `only` names none of it.
        """
        if self.script is not None:
            return (SCRIPT,)
        there = [workload for workload in WORKLOADS if workload.part in self.parts]
        if self.real_weights is not None:
            there.append(REAL_WEIGHTS)
        if not self.only:
            return tuple(there)
        names = [workload.name for workload in there]
        unknown = [word for word in self.only if not any(fnmatchcase(name, word) for name in names)]
        if unknown:
            raise UsageError(f"no workload {', '.join(unknown)}", hint=f"there are: {', '.join(names)}")
        chosen = {name for name in names if any(fnmatchcase(name, word) for word in self.only)}
        chosen |= {workload.against for workload in there if workload.name in chosen and workload.against}
        return tuple(workload for workload in there if workload.name in chosen)

    def check_script(self) -> None:
        """Refuse a program that is not there.

        Raises:
            UsageError: --script names no file, or what chooses among our own workloads goes with it.
        """
        if self.script is None:
            return
        if fault := fault_of(self.script):
            raise UsageError(f"--script {self.script}: {fault}", hint="verify_training --script FILE -- ARGUMENTS")
        if self.only or self.real_weights is not None:
            raise UsageError(
                "--script cannot be combined with --only or --real-weights",
                hint="verify_training --script FILE -- ARGUMENTS",
            )

    def check_weights(self) -> None:
        """Refuse a folder that holds no model.

        Raises:
            UsageError: no such folder, no config.json, or no weights in it.
        """
        folder = self.real_weights
        if folder is None:
            return
        if "transformers" not in self.parts:
            raise UsageError("--real-weights needs --with transformers")
        if not folder.is_dir():
            raise UsageError(f"--real-weights {folder}: no such folder", hint=_SAVED)
        if not (folder / "config.json").is_file():
            raise UsageError(f"--real-weights {folder}: holds no config.json", hint=_SAVED)
        if not any(folder.glob("*.safetensors")) and not any(folder.glob("*.bin")):
            raise UsageError(f"--real-weights {folder}: holds no weights (*.safetensors, *.bin)", hint=_SAVED)

    def selection(self) -> dict[str, Any]:
        """What was chosen, as the record keeps it."""
        return {
            "with": list(self.parts),
            "only": list(self.only),
            "inject": self.fault,
            "real_weights": str(self.real_weights) if self.real_weights else None,
            "script": self.script.name if self.script else None,
        }

    def statement(self, gpu: Mapping[str, Any]) -> str:
        """Return the first line of every report: what this run can and cannot say."""
        said = VerifyRequest.statement(self, gpu).replace("A chosen part of the suite.", "A chosen part.")
        if self.script is not None:
            return f"Training by {self.script.name}. {said}"
        return f"Training with {' and '.join(part.capitalize() for part in self.parts)}. {said}"


_SAVED = "a folder as `model.save_pretrained(FOLDER)` writes it"
