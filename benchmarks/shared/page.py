"""The page of figures: benchmarks/README.md from benchmarks/results.json."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve().parents[1]
RESULTS, README = HERE / "results.json", HERE / "README.md"
_BOUND = re.compile(r"^(<=|>=|<|>) ?([0-9.]+)")
# What a figure is, in a line; a name that is not here stands for itself.
MEANINGS: Mapping[str, str] = {
    "benchmark_mps.matmul_of_peak": "its product of matrices, as a share of what the card's own library reaches",
    "benchmark_mps.matmul_bf16_of_peak": "the same in bfloat16",
    "audit.cpu_ratio": "CPU time of an audit over that of reading and hashing the wheel",
    "audit.peak_mb": "memory at most, auditing the official wheel",
    "audit.quick_s": "an audit of the official wheel without hashing its members",
    "audit.wall_ratio": "the audit's wall time over the same floor",
    "cache.other_path_hits": "objects that a checkout at another path takes from a warm ccache",
    "cache.other_path_ratio": "its CPU time over the cold one's, compile steps",
    "cache.second_host_hits": "objects that a second host takes from the shared Redis, by sccache",
    "cache.warm_hits": "objects that a fresh build folder takes from a warm ccache",
    "cache.warm_ratio": "its CPU time over the cold one's, compile steps",
    "compile.develop_O0_of_stock_O0_ratio": "compile CPU of develop at -O0 over stock at -O0",
    "compile.develop_O0_ratio": "compile CPU of develop at -O0 over stock at -O2",
    "compile.develop_ratio": "compile CPU of `--profile develop` over stock, both at -O2",
    "compile.release_ratio": "compile CPU of release with the header over stock, both at -O2",
    "doctor.s": "the doctor on this host",
    "driver.noop_s": "`build_wheel` when all is built",
    "driver.overhead_s": "what the driver adds to the build it drives",
    **{
        f"fuzz.{target}_{what}": meaning
        for target in (
            "audit",
            "bitcode",
            "commands",
            "messages",
            "receipts",
            "recipes",
            "recordings",
            "records",
            "triage",
        )
        for what, meaning in (
            ("errors", f"uncaught errors of `{target}`, by mutated inputs"),
            ("slowest_s", f"the slowest of them, CPU time, of `{target}`"),
        )
    },
    "kernels.bound": "share of the official wheel's Metal kernels that have a contract and were run",
    "kernels.compiled": "share of the official wheel's Metal kernels that compile for this processor",
    "kernels.false_alarms": "findings in the official wheel that no known issue explains",
    "kernels.full_again_s": "`verify_kernels` of the whole wheel again, nothing changed",
    "kernels.full_s": "`verify_kernels` of the whole official wheel, empty cache",
    "kernels.large_s": "`verify_kernels --large` of the whole official wheel, empty cache",
    "kernels.faults_caught": "share of the faults injected by rule that change a bit of a result and are found",
    "kernels.quick_again_s": "`verify_kernels --quick` again, nothing changed",
    "kernels.quick_s": "`verify_kernels --quick` of the official wheel, empty cache",
    "python.second_ratio": "CPU time of a second Python in one tree over a whole first build",
    "rebuild.editable_of_install_ratio": "`--editable` after an edit of one .cpp, over `ninja install` and the import",
    "rebuild.editable_ratio": "the same over plain ninja and the import",
    "rebuild.one_file_s": "`--editable`: from saving one .cpp to the process that has imported it",
    "rebuild.wheel_ratio": "an edit of one .cpp packed into a finished wheel, over `python -m build` doing the same",
    "rebuild.wheel_s": "from saving one .cpp to the finished wheel",
    "releases.found": "public bugs that the default suite finds on a release that has them, and not on a later one",
    "releases.quick_found": "the same, found by `--quick`",
    "rehearsal.edit_cpu_s": "from an edit of one `.mm` to the next whole wheel, compared again",
    "rehearsal.mm_files": "Objective-C++ files of 2.6.0 inside the wheel that Linux builds",
    "rehearsal.registrations_equal": "operators registered for MPS in it and in the official wheel",
    "rehearsal.selectors_equal": "Objective-C messages in it and in the official wheel",
    "rehearsal.unexplained": "differences from the official wheel without a reason",
    "rehearsal.whole_cpu_s": "a whole rehearsal, over all runs that it took; the root included",
    "rehearsal.whole_wall_s": "the same by the clock",
    "simulation.build_cpu_s": "`simulate`: every object of the simulation, compiled anew",
    "simulation.limits_share": "share of the cases on the simulated device that fail by a limit of the simulation",
    "simulation.mutants_caught": "mutants of the MPS host code that change a result which the device suite catches",
    "simulation.add_us": "`add` of two 4 x 4 tensors on the simulated device, until it is done",
    "simulation.kernel_ratio": "Metal kernels over 1,000 x 1,000 elements, as times of the CPU on one thread",
    "simulation.start_s": "`simulate -- python` of two lines, once the simulation is built",
    "simulation.quick_cpu_s": "`verify_mps --simulated --quick`, once the simulation is built",
    "simulation.quick_mutants_caught": "the same, caught by the cases of `--quick`",
    "simulation.quick_explained": "the same of the quick cases: share of those failing that an explanation covers",
    "simulation.quick_limits_share": "the same of the quick cases: share that fails by a limit of the simulation",
    "simulation.selectors": "share of the selectors that the MPS host code sends which the simulation implements",
    "simulation.suite_cpu_s": "`verify_mps --simulated`, once the simulation is built",
    "simulation.upstream_passed": "share of PyTorch's own tests for mps that pass on the simulated device",
    "simulation.suite_explained": "share of the cases failing on the simulated device that an explanation covers",
    **{
        f"suite.{of}_caught{place}": what + more
        for of, what in (
            ("catalogue", "injected faults of the catalogue that the default budget catches: a regression check"),
            ("fresh", "injected faults of a fresh sample, drawn by a seed, that the default budget catches"),
        )
        for place, more in (
            ("", ""),
            *((f".{keys}", f"; here the first {keys:,} graph keys") for keys in (1000, 2000, 5000, 10000, 20000)),
        )
    },
    "suite.catalogue_quick_caught": "the same of the catalogue, caught by the cases of `--quick`",
    "suite.default_cpu_s": "CPU seconds of the default's cases, once, without faults",
    "suite.default_keys": "graph keys that the default's cases dispatch",
    "suite.false_alarms": "cases that fail on a healthy torch 2.13.0, on its CPU, of five seeds",
    "suite.false_alarms_2_11": "cases that fail on a healthy torch 2.11.0, on its CPU, of five seeds",
    "suite.fresh_quick_caught": "the same of the fresh sample, caught by the cases of `--quick`",
    "suite.gpu_false_alarms": "cases that fail on an NVIDIA GPU and are no known fault of CUDA",
    "suite.gpu_quick_s": "`verify_mps --quick` on an NVIDIA GPU where torch has run before",
    "suite.gpu_s": "`verify_mps` on an NVIDIA GPU",
    "suite.quick_cpu_s": "CPU seconds of the cases of `--quick`, once, without faults",
    "suite.quick_keys": "graph keys that the cases of `--quick` dispatch",
    **{
        f"threads.{device}_rate_ratio": f"`verify_mps --device {device}`: the default's rate over the best setting's"
        for device in ("cpu", "cuda", "mps")
    },
    "threads.cpu_rate_ratio.2_cores": "`verify_mps --device cpu` on two cores: its rate over the best setting's",
    **{
        f"core.{name}_{unit}": f"{what} `{name}` from a fresh clone"
        for name in ("audit_wheel", "build_sample", "verify_kernels", "verify_mps", "official_wheel", "simulate")
        for unit, what in (("s", "seconds to the verdict of"), ("gb", "disk of"))
    },
    "triage.first.unknown": "logs of threads unread before, first answers: no cause where one could be known",
    "triage.first.wrong": "the same: a wrong cause, or one where none may be named",
    "triage.unknown": "every log whose right answer is known: no cause where one could be known",
    "triage.wrong": "the same: a wrong cause, or one where none may be named",
    "verify.overhead_s": "what the driver of `verify_mps` adds to pytest",
}
HEAD = """\
# Figures

Generated from `results.json` by `nox -s benchmark -- readme`; each benchmark puts its rows there itself. The value is
the median of a run's measurements, the spread their least and most (for ratios over a draw of files: the middle 95 % of
resampled draws). CPU seconds are user and system time. *met* compares the median with the target. Nothing here was
measured on a Mac unless its machine says so.
"""


def render(rows: Sequence[Mapping[str, Any]]) -> str:
    """Return the page: a table for each machine, the commands below it."""
    parts = [HEAD]
    machines = dict.fromkeys(str(row["machine"]) for row in rows)
    for machine in machines:
        mine = [row for row in rows if row["machine"] == machine]
        parts.append(f"\n## {machine}\n\n")
        parts.append("| figure | what it is | value | spread | target | met | versions | date |\n")
        parts.append("|---|---|---:|---|---|---|---|---|\n")
        parts += [_line(row) for row in mine]
        parts.append("\n| figure | command |\n|---|---|\n")
        parts += [f"| {row['name']} | `{_cell(row['command'])}` |\n" for row in mine]
    return "".join(parts)


def met(median: float, target: str) -> str:
    """Return whether a median meets a target as the issues word it; `-` where the target is not a bound.

    >>> met(0.06, "<= 0.08"), met(0.47, "<= 0.40 over >= 150 files"), met(3.0, "printed beside")
    ('yes', '**no**', '-')
    """
    found = _BOUND.match(target)
    if not found:
        return "-"
    bound, sign = float(found[2]), found[1]
    good = {"<=": median <= bound, ">=": median >= bound, "<": median < bound, ">": median > bound}[sign]
    return "yes" if good else "**no**"


def _line(row: Mapping[str, Any]) -> str:
    spread = "-" if row["low"] == row["high"] else f"{row['low']:g} to {row['high']:g}"
    cells = (
        row["name"],
        MEANINGS.get(row["name"], ""),
        f"{row['median']:g} {'' if row['unit'] == 'ratio' else row['unit']}".strip(),
        spread,
        row["target"] or "-",
        met(float(row["median"]), str(row["target"])),
        row.get("versions", "-"),
        row["date"],
    )
    return f"| {' | '.join(_cell(cell) for cell in cells)} |\n"


def _cell(value: object) -> str:
    return " ".join(str(value).replace("|", "\\|").split())
