"""Time training and inference on the device against the CPU.

Device and CPU are those of one machine, as in PyTorch's announcement of 2022.

Rows: ResNet-50 (batch 128), BERT (batch 64, sequence 512) and VGG-16 (batch 64), training and inference; a decoder of
GPT-2's size in bfloat16; and kernels with what they reach of the device's own measured ceilings. Results are compared
with the CPU's before anything is timed. A row that is wrong, or that the device cannot have computed in that time, is
flagged, and its ratio withheld. The same command again goes on with what an interrupted run has not measured.

WHEEL_OR_REQUIREMENT and --python are as for verify_mps. `--device cpu` rehearses the meter (every ratio should read
1.0) and `--device cuda` measures another accelerator; neither says anything about MPS.
"""

from __future__ import annotations

import argparse
from dataclasses import dataclass
from pathlib import Path

from ..common.console import Console, human_seconds
from ..common.errors import MpsBuildError
from ..common.files import write_whole
from ..common.records.benchmark import BenchmarkRecord, Row
from ..common.records.device_record import to_json
from ..common.reporting import Result, job_summary
from ..verify.benchmark import Benchmark, BenchmarkRequest
from ..verify.reports import bars, benchmark_page
from ..verify.reports.benchmark_page import achieved, doubts, dtypes, ratio, shape
from .shared.options import Listed
from .shared.verification import TorchOptions, add_run_options, add_torch_options, torch_fields, words

TASK = ("verify", 3)
FIRST = ("--python", "--quick", "--only", "--html", "--svg")
EXITS = (12, 13, 14, 15, 16, 17)
EXTRA = "png"
EXAMPLES = (
    "torch==2.13.0 --svg speed-up.svg --html speed-up.html",
    "wheelhouse/torch-2.6.0-cp311-cp311-macosx_11_0_arm64.whl --quick",
    "--python ~/venv/bin/python --only resnet50,bert:training --json result.json",
    "--python ~/venv/bin/python --device cpu --quick",
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Options(TorchOptions):
    """What the command line says."""

    quick: bool
    only: str
    fresh: bool
    svg: Path | None
    png: Path | None


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the command's arguments and options to its parser."""
    add_torch_options(parser)
    parser.add_argument(
        "--quick", action="store_true", help="take under three minutes, with smaller batches and sequences"
    )
    parser.add_argument(
        "--only", metavar="ROW[,ROW]", action=Listed, default="", help="only these rows: resnet50, or bert:training"
    )
    parser.add_argument("--fresh", action="store_true", help="measure again what an interrupted run has measured")
    add_run_options(parser)
    parser.add_argument("--svg", metavar="FILE", type=Path, help="draw a chart like the announcement's, as SVG")
    parser.add_argument("--png", metavar="FILE", type=Path, help="the same chart as PNG (needs Pillow)")


def run(options: Options, console: Console) -> Result:
    """Measure, write the record and the charts, and print the ratios."""
    benchmark = Benchmark(_request(options), console)
    try:
        record = benchmark.measure()
    except KeyboardInterrupt:
        record = benchmark.interrupted()
    except MpsBuildError:
        if benchmark.refused_record is not None:
            console.print(f"record   {benchmark.folder / 'record.json'}")
        raise
    write_reports(options, record)
    _print_end(record, benchmark.folder / "record.json", console)
    return Result(document=to_json(record), exit_code=record.exit_code, cause=record.cause, hint=record.hint)


def write_reports(options: Options, record: BenchmarkRecord) -> None:
    """Write the page and the pictures that were requested."""
    if options.html is not None:
        write_whole(options.html, benchmark_page.render(record))
    if options.svg is not None:
        write_whole(options.svg, bars.svg(record))
    if options.png is not None:
        write_whole(options.png, bars.png(record))
    job_summary(benchmark_page.markdown(record))


def _request(options: Options) -> BenchmarkRequest:
    fields = torch_fields(options)
    if options.png is not None:
        bars.check_pillow()  # before minutes are spent, not after
    return BenchmarkRequest(**fields, quick=options.quick, fresh=options.fresh, only=words(options.only))


def _print_end(record: BenchmarkRecord, path: Path, console: Console) -> None:
    console.print()
    console.print(record.statement, style="bold")
    console.table(
        ("row", "mode", "shape", "dtype", "times the CPU", "CPU step", "device step", "first", "reaches", ""),
        [_cells(row) for row in record.rows],
    )
    for each in record.rows:
        for flag in each.flags:
            console.warn(f"{each.name} {each.mode}: {flag.id}: {flag.text}")
        if each.reason:
            console.warn(f"{each.name} {each.mode}: {each.outcome}: {each.reason}")
        for lowered in each.lowered:
            console.warn(f"{each.name} {each.mode}: not enough memory: {lowered}")
    for skipped in record.skipped:
        console.print(f"not measured: {skipped.name} {skipped.mode}: {skipped.reason}")
    for flag in record.flags:
        console.warn(f"{flag.id}: {flag.text}")
    for note in record.notes:
        console.warn(note)
    part = " (partial)" if record.partial else ""
    rows = [
        ("verdict", f"{record.verdict}{part}{f': {record.cause}' if record.cause else ''}"),
        ("torch", f"{record.torch.version or 'unknown'} at {(record.torch.commit or 'an unknown commit')[:12]}"),
        ("time", human_seconds(record.seconds)),
        ("record", str(path)),
    ]
    if record.fault:
        rows.insert(1, ("injected fault", record.fault))
    console.table(("", ""), rows)
    if record.message:
        console.print(record.message, style="bold red")
    if record.hint:
        console.print(f"next: {record.hint}")
    elif record.exit_code == 0:
        console.print(f"next: `nox -s compare -- OTHER_RECORD {path}` compares it with another wheel, macOS or Mac")


def _cells(row: Row) -> list[str]:
    steps = [f"{row.seconds[name] * 1000:.4g} ms" if name in row.seconds else "" for name in ("cpu", "device")]
    first = row.first_step_seconds.get("device")
    return [
        row.name,
        row.mode,
        shape(row),
        dtypes(row),
        ratio(row),
        *steps,
        f"{first:.3g} s" if first is not None else "",
        achieved(row),
        doubts(row),
    ]
