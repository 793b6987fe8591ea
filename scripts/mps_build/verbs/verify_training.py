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
from pathlib import Path

from ..cli import Outcome
from ..console import Console
from ..errors import MpsBuildError, UsageError
from ..record import to_json
from ..training.request import TrainingRequest
from ..training.verification import TrainingVerification
from ..training.workloads import PARTS
from .verify_mps import print_end, terminated_as_interrupted, words, write_reports

EXAMPLES = (
    "torch==2.13.0",
    "wheelhouse/torch-2.6.0-cp311-cp311-macosx_11_0_arm64.whl --with accelerate --html report.html",
    "torch==2.2.2 --with transformers --transformers 4.57.6",
    "--python ~/venv/bin/python --real-weights ~/models/distilbert",
    "torch==2.13.0 --device cpu --only accelerate-vision",
)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("target", nargs="?", metavar="WHEEL_OR_REQUIREMENT")
    parser.add_argument("--python", metavar="PATH", help="an interpreter (or, beside a wheel, also a version: 3.12)")
    parser.add_argument("--with", dest="parts", action="append", choices=PARTS, help="only this library (repeatable)")
    parser.add_argument("--device", choices=("mps", "cuda", "cpu"), default="mps")
    parser.add_argument("--only", metavar="NAME[,NAME]", default="", help="only these workloads (or shell patterns)")
    parser.add_argument("--accelerate", metavar="VERSION", help="this version of Accelerate instead of the table's")
    parser.add_argument("--transformers", metavar="VERSION", help="this version of Transformers")
    parser.add_argument("--real-weights", metavar="DIR", type=Path, help="a saved model of yours, as one more case")
    parser.add_argument("--plant", metavar="FILE.py:NAME", help="a fault around each device leg: docs/plants.md")
    parser.add_argument("--accept", choices=("known",), help="known: known issues alone are no failure")
    parser.add_argument("--allow-virtual", action="store_true", help="run on a virtual Mac too (without a verdict)")
    parser.add_argument("--host", metavar="FILE", type=Path, help="diagnose a recorded host instead of this one")
    parser.add_argument("--memory-limit", metavar="GB", type=float, help="what a process may hold")
    parser.add_argument("--known-issues", metavar="FILE", type=Path, help="instead of the workloads' known_issues.yaml")
    parser.add_argument("--record", metavar="DIR", type=Path, help="where the record and the logs go")
    parser.add_argument("--offline", action="store_true", help="ask no network: use what the cache holds")
    parser.add_argument("--junit", metavar="FILE", type=Path, help="write JUnit XML as well")
    parser.add_argument("--html", metavar="FILE", type=Path, help="write one self-contained page as well")
    parser.add_argument("--markdown", metavar="FILE", type=Path, help="write a job summary as well")


def run(arguments: argparse.Namespace, console: Console) -> Outcome:
    verification = TrainingVerification(_request(arguments), console)
    with terminated_as_interrupted():
        try:
            record = verification.run()
        except KeyboardInterrupt:
            record = verification.interrupted_record()
        except MpsBuildError:
            if verification.refusal is not None:
                write_reports(arguments, verification.refusal)
                console.print(f"record   {verification.folder / 'record.json'}")
            raise
    write_reports(arguments, record)
    print_end(record, verification.folder / "record.json", console)
    return Outcome(document=to_json(record), exit_code=record.exit_code, cause=record.cause, hint=record.hint)


def _request(arguments: argparse.Namespace) -> TrainingRequest:
    if arguments.target is None and arguments.python is None and arguments.host is None:
        raise UsageError(
            "neither a wheel, nor a requirement, nor --python",
            hint="for example: nox -s verify_training -- torch==2.13.0",
        )
    if arguments.memory_limit is not None and arguments.memory_limit <= 0:
        raise UsageError("--memory-limit takes a number above 0")
    memory = arguments.memory_limit
    return TrainingRequest(
        target=arguments.target,
        python=arguments.python,
        device=arguments.device,
        parts=tuple(part for part in PARTS if part in (arguments.parts or PARTS)),
        only=words(arguments.only),
        accelerate=arguments.accelerate,
        transformers=arguments.transformers,
        real_weights=arguments.real_weights,
        plant=arguments.plant,
        accept_known=arguments.accept == "known",
        allow_virtual=arguments.allow_virtual,
        offline=arguments.offline,
        memory_bytes=int(memory * 1_000_000_000) if memory is not None else None,
        host_file=arguments.host,
        folder=arguments.record,
        known_issues=arguments.known_issues,
    )
