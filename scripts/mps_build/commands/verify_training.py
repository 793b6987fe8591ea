"""Test whether Accelerate and Transformers train as their pages promise.

WHEEL_OR_REQUIREMENT and --python are `verify_mps`'s: a wheel or a requirement (torch==2.13.0) gets a venv of its own,
with the versions of both libraries that go with that torch; --python PATH alone is an interpreter that has all of it
already: nothing is installed into it.

Each training runs first on the device and then on the CPU, in processes of their own (Accelerate's by the real
`accelerate launch`): the device is really used, the first gradients and losses agree with float64 within a bound, and
both learn. Nothing is downloaded: scikit-learn's digits, a made-up paraphrase task, models from configs.

--script FILE -- ARGUMENTS runs your own program instead, as it is: losses of its first 20 steps and first gradients on
the device against the CPU, same seeds, dropout off in both. `{device}` in the arguments is each run's device.

`--device cpu` rehearses on the CPU and `--device cuda` on another accelerator; neither says anything about MPS.
"""

from __future__ import annotations

import argparse
from dataclasses import dataclass
from pathlib import Path

from mps_build.common.console import Console
from mps_build.common.errors import UsageError
from mps_build.common.reporting import Result
from mps_build.verify import Verification
from mps_build.verify.training.request import PARTS, TrainingRequest
from mps_build.verify.training.suite import Training

from .shared.options import Listed
from .shared.verification import (
    VerdictOptions,
    add_run_options,
    add_torch_options,
    add_verdict_options,
    concluded,
    torch_fields,
    verdict_fields,
    words,
)

# What stands behind a `--` of its own are the arguments of --script's program.
TAKES_COMMAND = True
TASK = ("verify", 2)
FIRST = ("--python", "--script", "--only", "--with", "--html")
EXITS = (10, 11, 12, 13, 14, 15, 16, 17, 20)
EXAMPLES = (
    "torch==2.13.0",
    "wheelhouse/torch-2.6.0-cp311-cp311-macosx_11_0_arm64.whl --with accelerate --html report.html",
    "torch==2.2.2 --with transformers --transformers 4.57.6",
    "--python ~/venv/bin/python --real-weights ~/models/distilbert",
    "torch==2.13.0 --device cpu --only accelerate-vision",
    "--python ~/venv/bin/python --script train.py -- --epochs 1 --device {device}",
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Options(VerdictOptions):
    """What the command line says."""

    parts: tuple[str, ...] | None
    only: str
    accelerate: str | None
    transformers: str | None
    real_weights: Path | None
    script: Path | None
    command: tuple[str, ...] = ()


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the command's arguments and options to its parser."""
    add_torch_options(parser)
    parser.add_argument("--with", dest="parts", action="append", choices=PARTS, help="only this library (repeatable)")
    only = "only these workloads (or shell patterns)"
    parser.add_argument("--only", metavar="NAME[,NAME]", action=Listed, default="", help=only)
    parser.add_argument("--accelerate", metavar="VERSION", help="another version of Accelerate than the tested one")
    parser.add_argument("--transformers", metavar="VERSION", help="another version of Transformers than the tested one")
    parser.add_argument(
        "--script",
        metavar="FILE",
        type=Path,
        help="your own training program; its arguments follow a `--` of their own",
    )
    parser.add_argument("--real-weights", metavar="DIR", type=Path, help="a saved model to test as one more case")
    add_run_options(parser)
    add_verdict_options(parser)


def run(options: Options, console: Console) -> Result:
    """Run the workloads and print the verdict; the exit status follows it (docs/reference/exit_codes.md)."""
    request = _request(options)
    verification = Verification(request, console, Training(request))
    return concluded(verification, options, console, command="verify_training", resumes=False)


def _request(options: Options) -> TrainingRequest:
    if options.command and options.script is None:
        raise UsageError("arguments after `--` need --script FILE", hint="--script FILE -- ARGS")
    # A program brings its own libraries; --with installs ours beside it.
    default = () if options.script else PARTS
    return TrainingRequest(
        **torch_fields(options),
        **verdict_fields(options),
        parts=tuple(part for part in PARTS if part in (options.parts or default)),
        only=words(options.only),
        accelerate=options.accelerate,
        transformers=options.transformers,
        real_weights=options.real_weights,
        script=options.script,
        script_arguments=options.command,
    )
