"""Every page and picture that the project makes, filled with as much as a real run gives.

Real: ids of drawn cases, the operators and the kernels of 2.15.0 (`tests/recorded/pages`), a benchmark of an H200.
Made up: how the cases ended, and the times of the 6,000 steps (a build of 2.6.0 has 5,900); the wheels are empty.
"""

from __future__ import annotations

import json
import lzma
import re
from collections import Counter
from pathlib import Path

from http_servers import publish, wheel
from mps_build.cli import main
from mps_build.common.known_issues import load_issues
from mps_build.common.records.benchmark import BenchmarkRecord, load_benchmark
from mps_build.common.records.device_record import Case, KnownIssue, Record, Torch
from mps_build.kernels.report import page
from mps_build.verify.releases import page as releases_page
from mps_build.verify.releases.table import Run, Table, make_table
from mps_build.verify.reports import bars, benchmark_page, html

TESTS = Path(__file__).parents[2]
RECORDED = TESTS / "recorded"
_MISMATCH = """Mismatch: the gradient of weight differs from float64 on the CPU by more than its rounding explains
  input: shape (2, 3, 5, 7), strides (105, 1, 21, 3), float32, seed 20261121
  at (1, 2, 0, 4): got -0.37109375, expected 1.2451171875 (error 1.6162109375, allowed 4.76837158203125e-07)
  tests/device/engine/compare.py:214: in held_against_float64
      raise Mismatch(f"{what} differs from float64 on the CPU by more than its rounding explains")"""


def write_pages(folder: Path) -> list[Path]:
    """Write each page into `folder`, by the command that makes it where it needs no device; return their files."""
    benchmark = _benchmark()
    pages = {
        "verify_mps": html.render(verification()),
        "verify_mps-everything-passed": html.render(verification(failures=False)),
        "verify_kernels": page.render([_unpacked("verify_kernels-2.15.0")]),
        "releases": releases_page.html(
            _releases(), command="nox -s verify_mps -- --releases 1.12.1..2.15.0 --simulated"
        ),
        "benchmark_mps": benchmark_page.render(benchmark),
        "benchmark_mps-picture": _shown(bars.svg(benchmark)),
    }
    for name, text in pages.items():
        (folder / f"{name}.html").write_text(text, encoding="utf-8")
    coverage = _coverage(folder)
    report = folder / "build_report.html"
    picture = folder / "build_report.svg"
    build = _build(folder, steps=6000)
    assert main("build_report", [str(build), "--html", str(report), "--svg", str(picture)]) == 0
    alone = folder / "build_report-picture.html"
    alone.write_text(_shown(picture.read_text(encoding="utf-8")), encoding="utf-8")
    return [*(folder / f"{name}.html" for name in pages), *coverage, report, alone, *_index(folder, wheels=200)]


def _releases() -> Table:
    """Return the table of twenty releases: real known issues, the cases of each wrong in two of three."""
    issues = load_issues(TESTS / "device" / "known_issues.yaml")
    ids = [name for row in issues for name in (*row.shown_by, *(row.cases or ())) if "*" not in name]
    releases = [*(f"2.{minor}.{patch}" for minor in range(6, 15) for patch in (0, 1)), "1.13.1", "2.15.0"]
    runs = []
    for at, release in enumerate(releases):
        wrong = {name for place, name in enumerate(ids) if (place + at) % 3}
        cases = [
            Case(id=name, layer="regressions", outcome="failed" if name in wrong else "passed", reason=_MISMATCH)
            for name in dict.fromkeys(ids)
        ]
        runs.append(Run(release=release, record=verification().model_copy(update={"cases": tuple(cases)})))
    return make_table(issues, runs, macos="15.2")


def _benchmark() -> BenchmarkRecord:
    """Return the recorded one, with the longest that a benchmark says of itself first."""
    record = load_benchmark(RECORDED / "records" / "benchmark-cuda-h200-torch-2.11.0.json")
    said = (
        "A fault was injected (benchmarks/device/faults/of_convolutions.py:forgets_to_wait_for_the_device). "
        "A chosen part of the benchmark. A rehearsal on another accelerator (NVIDIA H200): it says nothing about MPS."
    )
    return record.model_copy(update={"statement": said})


def verification(*, failures: bool = True) -> Record:
    """Return a record of `--quick` on a Mac that does not exist: all its cases, 24 new failures, 40 known ones."""
    ways = sorted(path.stem for path in (TESTS / "device" / "transforms").glob("[!_]*.py"))
    files = sorted((TESTS / "device" / "operators").glob("[!_]*.py"))
    named = sorted({name for path in files for name in re.findall(r'add\("(\w+)"', path.read_text(encoding="utf-8"))})
    ids = [f"{name}:{way}:{number}" for name in named for way in ways for number in range(2)]
    issue = KnownIssue(
        id="175189",
        link="https://github.com/pytorch/pytorch/issues/175189",
        title="BatchNorm2d backward with channels_last or permuted input",
        outcome="fails",
        reason="the gradient of the weight is off by orders of magnitude; training diverges within a few steps",
        since="2.10",
    )
    longest = set(sorted(ids, key=len)[-24:])
    cases = [_case(name, number, failed=failures and name in longest) for number, name in enumerate(ids)]
    return Record(
        tool="mps-build 0.2.0",
        statement="MPS on Apple M3 Max, macOS 26.1 (25B78), torch 2.13.0.",
        verdict="regressed" if failures else "verified",
        exit_code=10 if failures else 0,
        hint="`nox -s repro -- record.json CASE` writes one failure as a script and an issue" if failures else None,
        partial=False,
        device="mps",
        target={"kind": "python", "name": "~/venv/bin/python", "version": "2.13.0"},
        torch=Torch(version="2.13.0", commit="d0f2af8b66b20da4baa50644c0cd3f887a2eae2e"),
        started="2026-11-21T19:00:00+00:00",
        seconds=312.0,
        known_issues=(issue,),
        counts=dict(Counter(each.outcome for each in cases)),
        host={"system": "Darwin", "arch": "arm64", "macos": "26.1", "chip": "Apple M3 Max", "cores": 16},
        cases=tuple(cases),
    )


def _case(name: str, number: int, *, failed: bool) -> Case:
    known = not failed and number % 37 == 5
    skipped = not failed and not known and number % 41 == 7
    share = 2.5 if failed else (number * 37 % 100) / 100
    return Case(
        id=name,
        layer=name.partition("-")[0],
        outcome="failed" if failed else "known" if known else "skipped" if skipped else "passed",
        reason=_MISMATCH if failed else "a question for macOS 15 and newer only" if skipped else None,
        known_issue="175189" if known else None,
        issue=("175189",) if known else (),
        largest=None if skipped else share,
        bound=None if skipped else 1.0,
        seconds=0.01 + (number * 7919 % 1000) / 2000,
    )


def _unpacked(name: str) -> dict[str, object]:
    packed = (RECORDED / "pages" / f"{name}.json.xz").read_bytes()
    document: dict[str, object] = json.loads(lzma.decompress(packed))
    return document


def _coverage(folder: Path) -> list[Path]:
    facts = folder / "facts.json"
    facts.write_text(json.dumps(_unpacked("op_coverage-2.15.0")), encoding="utf-8")
    alone, both = folder / "op_coverage.html", folder / "op_coverage-against.html"
    older = RECORDED / "op_coverage" / "v2.6.0-wheel.json"
    assert main("op_coverage", [str(facts), "--html", str(alone)]) == 0
    assert main("op_coverage", [str(older), "--against", str(facts), "--html", str(both)]) == 0
    return [alone, both]


def _build(folder: Path, *, steps: int) -> Path:
    """Return a build folder with a log and a graph: real names, ten lanes, every step once."""
    build = folder / "pytorch" / "build"
    build.mkdir(parents=True)
    recorded = (RECORDED / "ninja_logs" / "v2.6.0-darwin" / "ninja_log").read_text(encoding="utf-8").splitlines()[1:]
    names = [each.split("\t")[3] for each in recorded if each.endswith(tuple("0123456789abcdef"))]
    objects = [name for name in names if name.endswith(".o")]
    lines, graph, free = [], ["rule CXX_COMPILER_\n  command = c++\n", "rule CXX_LINKER_\n  command = c++\n"], [0] * 10
    outputs = []
    for number in range(steps - 1):
        name = objects[number % len(objects)]
        output = f"part{number // len(objects):02d}/{name}"
        lane = min(range(10), key=free.__getitem__)
        begin, free[lane] = free[lane], free[lane] + 400 + number * 7919 % 31_000
        lines.append(_line(begin, free[lane], output))
        graph.append(f"build {output}: CXX_COMPILER_ {output.removesuffix('.o')}\n")
        outputs.append(output)
    last = max(free)
    lines.append(_line(last, last + 42_000, "lib/libtorch_cpu.dylib"))
    graph.append(f"build lib/libtorch_cpu.dylib: CXX_LINKER_ {' '.join(outputs)}\n")
    (build / ".ninja_log").write_text("# ninja log v7\n" + "".join(lines), encoding="utf-8")
    (build / "build.ninja").write_text("".join(graph), encoding="utf-8")
    return build


def _line(begin: int, end: int, output: str) -> str:
    stamp = 1_795_300_000_000_000_000 + begin * 1_000_000
    return f"{begin}\t{end}\t{stamp}\t{output}\t{begin + 1:x}\n"


def _index(folder: Path, *, wheels: int) -> list[Path]:
    """Return the pages of an index: 40 nightlies for each of five Pythons, the last with their companions."""
    wheelhouse = folder / "wheelhouse"
    pythons = ("cp310", "cp311", "cp312", "cp313", "cp314")
    for number in range(wheels // len(pythons) - 2):
        for python in pythons:
            version = f"2.{16 - number // 19}.0.dev202611{1 + number % 28:02d}+mps.g1eba9b{number:x}"
            wheel(wheelhouse, "torch", version, tag=f"{python}-{python}-macosx_14_0_arm64", requires=("filelock",))
            if number == 0:
                pin = (f"torch=={version}",)
                for name in ("torchvision", "torchaudio"):
                    tag = f"{python}-{python}-macosx_14_0_arm64"
                    wheel(wheelhouse, name, "0.30.0+mps.g7af6987", tag=tag, requires=pin)
    publish(wheelhouse, "--base-url", "https://example.org/releases/download/wheels")
    site = folder / "site"
    newest = sorted((site / "sets").iterdir())[-1]
    return [
        site / "index.html",
        site / "simple" / "index.html",
        site / "simple" / "torch" / "index.html",
        newest / "simple" / "torch" / "index.html",
    ]


def _shown(svg: str) -> str:
    """Return a page that shows a picture alone, as a browser shows its file."""
    return f'<!doctype html><html lang="en"><title>picture</title><body style="margin:0">{svg[svg.index("<svg") :]}'
