"""The workloads: which script, how it is started, what it must come to."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

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
