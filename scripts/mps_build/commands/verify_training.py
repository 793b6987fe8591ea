"""Ask a torch whether training with Accelerate and Transformers is right on this Mac, as their pages promise.

WHEEL_OR_REQUIREMENT and --python are `verify_mps`'s: a wheel or a requirement (torch==2.13.0) gets a venv of its own,
with the versions of both libraries that go with that torch; --python PATH alone is an interpreter that has all of it
already: nothing is installed into it.

Each training runs first on the device and then on the CPU, in processes of their own (Accelerate's by the real
`accelerate launch`): the device is really used, the first gradients and losses agree with float64 within a bound, and
both learn. Nothing is downloaded: scikit-learn's digits, a made-up paraphrase task, models from configs.

`--device cpu` rehearses on the CPU and `--device cuda` on another accelerator; neither says anything about MPS.
"""

from __future__ import annotations

import argparse
from dataclasses import dataclass
from pathlib import Path

from mps_build.common.console import Console
from mps_build.common.result import Result
from mps_build.verify.training.request import TrainingRequest
from mps_build.verify.training.verification import TrainingVerification
from mps_build.verify.training.workloads import PARTS

from .shared.conclusion import concluded
from .shared.torch_options import (
    VerdictOptions,
    add_run_options,
    add_torch_options,
    add_verdict_options,
    torch_fields,
    verdict_fields,
    words,
)

EXAMPLES = (
    "torch==2.13.0",
    "wheelhouse/torch-2.6.0-cp311-cp311-macosx_11_0_arm64.whl --with accelerate --html report.html",
    "torch==2.2.2 --with transformers --transformers 4.57.6",
    "--python ~/venv/bin/python --real-weights ~/models/distilbert",
    "torch==2.13.0 --device cpu --only accelerate-vision",
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Options(VerdictOptions):
    """What the command line says."""

    parts: tuple[str, ...] | None
    only: str
    accelerate: str | None
    transformers: str | None
    real_weights: Path | None


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add_torch_options(parser)
    parser.add_argument("--with", dest="parts", action="append", choices=PARTS, help="only this library (repeatable)")
    parser.add_argument("--only", metavar="NAME[,NAME]", default="", help="only these workloads (or shell patterns)")
    parser.add_argument("--accelerate", metavar="VERSION", help="this version of Accelerate instead of the table's")
    parser.add_argument("--transformers", metavar="VERSION", help="this version of Transformers")
    parser.add_argument("--real-weights", metavar="DIR", type=Path, help="a saved model of yours, as one more case")
    add_run_options(parser)
    add_verdict_options(parser)


def run(options: Options, console: Console) -> Result:
    verification = TrainingVerification(_request(options), console)
    return concluded(verification, options, console, command="verify_training", resumes=False)


def _request(options: Options) -> TrainingRequest:
    return TrainingRequest(
        **torch_fields(options),
        **verdict_fields(options),
        parts=tuple(part for part in PARTS if part in (options.parts or PARTS)),
        only=words(options.only),
        accelerate=options.accelerate,
        transformers=options.transformers,
        real_weights=options.real_weights,
    )
