"""The commands of the workloads, as values."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Literal

from mps_build.common.process import Command

from .request import COMPARED_STEPS, SCRIPT, Workload

RunName = Literal["device", "cpu"]
_FALLBACK = "PYTORCH_ENABLE_MPS_FALLBACK"


@dataclass(frozen=True, slots=True, kw_only=True)
class Bench:
    """What all commands of one run have in common.

    `force_cpu`: the host has an accelerator that cannot be hidden, and the CPU is to be rehearsed.
    """

    python: Path
    environ: Mapping[str, str]
    scripts: Path
    folder: Path
    device: str
    force_cpu: bool
    config: Path | None = None
    fault: str | None = None
    program: tuple[str, ...] = ()

    def with_config(self, config: Path) -> Bench:
        """Return the same bench with a configuration file for `accelerate launch`."""
        return replace(self, config=config)

    @property
    def accelerate(self) -> tuple[str, ...]:
        """The call of the `accelerate` command by this interpreter."""
        # The console script's own module: a script's first line may name a Python that was moved.
        return (str(self.python), "-m", "accelerate.commands.accelerate_cli")

    def command(self, argv: tuple[str, ...], *, fallback: bool = False) -> Command:
        """Return a command in the bench's environment.

        Args:
            fallback: set PYTORCH_ENABLE_MPS_FALLBACK, which is otherwise taken out.
        """
        environ = {name: value for name, value in self.environ.items() if name != _FALLBACK}
        if fallback:
            environ[_FALLBACK] = "1"
        return Command(argv=argv, cwd=self.folder, environ=environ)

    def env(self) -> Command:
        """`accelerate env`: what Accelerate says of itself and the machine."""
        return self.command((*self.accelerate, "env"))

    def config_default(self) -> Command:
        """`accelerate config default`: it writes into HF_HOME, which is ours."""
        return self.command((*self.accelerate, "config", "default"))

    def training(self, workload: Workload, run: RunName) -> Command:
        """Return one run of a training."""
        argv = self._started(workload, run) if workload.launched else (str(self.python),)
        argv += (str(self.scripts / workload.script), *self._options(workload, run))
        argv += ("--compared", str(COMPARED_STEPS))
        argv += ("--steps", str(workload.steps)) if workload.steps is not None else ()
        # Trainer takes it as its own argument; Accelerate as its command's.
        argv += ("--force-cpu",) if not workload.launched and self._on_cpu(run) else ()
        if workload is SCRIPT:
            program, *arguments = self.program
            argv += ("--program", program, "--", *arguments)
            return replace(self.command(argv), cwd=Path.cwd())  # its own relative paths
        return self.command(argv, fallback=workload.fallback and run == "device")

    def cases(self, workload: Workload, *, after: str | None, weights: Path | None) -> Command:
        """Return a child of a workload whose cases judge themselves."""
        argv = (str(self.python), str(self.scripts / workload.script), *self._options(workload, "device"))
        argv += ("--after", after) if after is not None else ()
        argv += ("--real-weights", str(weights)) if weights is not None else ()
        return self.command(argv)

    def processes(self, workload: Workload) -> Command:
        """Return two processes on the device."""
        launched = (*self.accelerate, "launch", "--multi_gpu", "--num_processes", "2", "--num_machines", "1")
        launched += ("--mixed_precision", "no", "--dynamo_backend", "no", "--main_process_port", "0")
        launched += ("--config_file", str(self.config)) if self.config is not None else ()
        script = str(self.scripts / workload.script)
        return self.command((*launched, script, "--outcomes", str(self.outcomes(workload, "device"))))

    def outcomes(self, workload: Workload, run: RunName) -> Path:
        """Return the file of a run's events, as JSON lines."""
        return self.folder / f"{run_name(workload, run)}.outcomes.jsonl"

    def exchange(self, workload: Workload) -> Path:
        """Return the folder in which the runs of a workload find each other's tensors."""
        return self.folder / "exchange" / workload.name

    def _on_cpu(self, run: RunName) -> bool:
        return run == "cpu" or self.force_cpu

    def _started(self, workload: Workload, run: RunName) -> tuple[str, ...]:
        argv = (*self.accelerate, "launch", "--num_processes", "1", "--num_machines", "1")
        argv += ("--mixed_precision", "no", "--dynamo_backend", "no")
        argv += ("--config_file", str(self.config)) if self.config is not None and not self._on_cpu(run) else ()
        return (*argv, "--cpu") if self._on_cpu(run) else argv

    def _options(self, workload: Workload, run: RunName) -> tuple[str, ...]:
        expected = self.device if run == "device" else "cpu"
        argv: tuple[str, ...] = ("--run", run, "--expect", expected, "--outcomes", str(self.outcomes(workload, run)))
        argv += ("--exchange", str(self.exchange(workload)))
        return (*argv, "--inject", self.fault) if self.fault and run == "device" else argv


def run_name(workload: Workload, run: RunName) -> str:
    """Return the name of a run's files: the workload and "device" or "cpu"."""
    return f"{workload.name}.{run}"


def training_environ(variables: Mapping[str, str], *, home: Path, device: str) -> dict[str, str]:
    """Return the environment of the children: no network, a Hugging Face home of our own, one machine, no telemetry.

    >>> made = training_environ({"PATH": "/bin"}, home=Path("/x"), device="cpu")
    >>> made["HF_HOME"], made["HF_HUB_OFFLINE"], made["CUDA_VISIBLE_DEVICES"]
    ('/x', '1', '')
    """
    made = {name: value for name, value in variables.items() if not name.startswith(("HF_", "ACCELERATE_"))}
    made |= {
        "HF_HOME": str(home),
        "HF_HUB_OFFLINE": "1",
        "TRANSFORMERS_OFFLINE": "1",
        "HF_DATASETS_OFFLINE": "1",
        "HF_HUB_DISABLE_TELEMETRY": "1",
        "DO_NOT_TRACK": "1",
        "TOKENIZERS_PARALLELISM": "false",
        "MPLCONFIGDIR": str(home),
        "XDG_CACHE_HOME": str(home / "cache"),
    }
    if device == "cpu":
        made["CUDA_VISIBLE_DEVICES"] = ""  # a rehearsal on the CPU of a host with another accelerator
    return made


def script_environ(variables: Mapping[str, str], *, own: Mapping[str, str], device: str) -> dict[str, str]:
    """Return the environment of the user's own program: its caches and models are where the user keeps them."""
    prefixes = ("HF_", "TRANSFORMERS_", "ACCELERATE_", "TORCH_HOME", "XDG_CACHE_HOME", "TOKENIZERS_")
    made = {**variables, **{name: value for name, value in own.items() if name.startswith(prefixes)}}
    made["HF_HUB_DISABLE_TELEMETRY"] = made["DO_NOT_TRACK"] = "1"
    if device == "cpu":
        made["CUDA_VISIBLE_DEVICES"] = ""
    return made
