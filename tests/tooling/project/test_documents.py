"""Every kind of page, issue, summary and generated table that we write is what its format's strict reader takes."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from documents import html_fault, markdown_fault, rendered, svg_fault, what_acts
from mps_build.cli import main
from mps_build.commands.shared.generated import generated_files
from mps_build.common.records.benchmark import BenchmarkRecord, load_benchmark
from mps_build.common.records.device_record import Case, KnownIssue, Record, Torch, load_record
from mps_build.kernels.report import page as kernels_page
from mps_build.kernels.report import repro as kernels_repro
from mps_build.publish.fleet import decide, look_at_build, look_at_record
from mps_build.verify.bisection import report as bisection
from mps_build.verify.bisection.state import State
from mps_build.verify.reports import bars, benchmark_page, html, markdown, repro
from mps_build.wheel_build.rehearsal.whole.comparing import parity_page
from mps_build.wheel_build.rehearsal.whole.parity import WholeParity, compared

ROOT = Path(__file__).parents[3]
RECORDED = ROOT / "tests" / "recorded"
# What a stranger's name, reason or message may hold.
EVIL = "</td></details>\n| x | <b>\"'& ``` <sentence> </summary> <!-- @all \x1b[2J"
# Each of these would do something in a reader's browser, or call somebody.
ACTS = (
    "<img src=https://example.org/a.png onerror=alert(1)> @all",
    "![a](https://example.org/a.png) [b](javascript:alert(1)) @org/team",
    "\"'><script>alert(1)</script><a style='position:fixed' onclick=x>",
    "javascript:alert(1)",
    "`a` | ``` \n\n# @all\n<iframe src=x>",
)
Check = Callable[[str], str | None]
Documents = Iterator[tuple[str, Check, str]]


def record(**more: Any) -> Record:
    cases = [
        {"outcome": outcome, "reason": EVIL, "issue": ("131750", EVIL), "largest": 1.5, "bound": 1.0, "seconds": 0.5}
        for outcome in ("failed", "crashed", "timeout", "known", "unexpected_pass", "skipped", "passed")
    ]
    known = KnownIssue(
        id="1", link="https://github.com/pytorch/pytorch/issues/1", title=EVIL, outcome="fails", reason=EVIL,
        since="2.0", fixed_by=None, cases=("case-3",),
    )  # fmt: skip
    return Record(
        tool="mps-build 0",
        statement=EVIL,
        verdict="regressed",
        exit_code=10,
        message=EVIL,
        hint=EVIL,
        partial=False,
        device="mps",
        target={"kind": "python", "name": EVIL},
        torch=Torch(version="2.13.0", commit="c" * 40),
        host={"chip": EVIL, "macos": "15.3"},
        known_issues=(known,),
        notes=(EVIL,),
        started="2026-11-21T19:00:00+00:00",
        seconds=1.0,
        counts={"failed": 1},
        cases=tuple(
            Case.model_validate({"id": f"case-{n}", "layer": "l", "known_issue": "1", **case})
            for n, case in enumerate(cases)
        ),
        **more,
    )


def of_verify() -> Documents:
    training = {"environment": {"training": {"accelerate_env": EVIL, "libraries": {"torch": EVIL}}}}
    for name, each in (
        ("verify", record()),
        ("training", record(**training)),
        ("recorded", load_record(RECORDED / "records" / "cuda-h200-torch-2.11.0-opinfo-int64.json")),
    ):
        yield f"{name} page", html_fault, html.render(each)
        yield f"{name} summary", markdown_fault, markdown.render(each)
    for case in record().cases:
        script = repro.render_script(record(), case, {"test_x": "x = '``` </details> <!--'\n"})
        yield f"issue of {case.outcome}", markdown_fault, repro.render_issue(record(), case, script, "repro_x.py")


def of_benchmark() -> Documents:
    recorded = load_benchmark(RECORDED / "records" / "benchmark-cuda-h200-torch-2.11.0.json")
    rows = tuple(row.model_copy(update={"reason": EVIL, "lowered": (EVIL,)}) for row in recorded.rows)
    strange = {"statement": EVIL, "message": EVIL, "notes": (EVIL,), "rows": rows, "gpu": {"name": EVIL}}
    for name, each in (("benchmark", recorded), ("strange benchmark", recorded.model_copy(update=strange))):
        yield f"{name} page", html_fault, benchmark_page.render(each)
        yield f"{name} summary", markdown_fault, benchmark_page.markdown(each)
        yield f"{name} chart", svg_fault, bars.svg(each)


def of_kernels() -> Documents:
    where = {"got": "-1.5e-05", "want": "0.1", "element": "3"}
    rows = [
        {"name": f"{name}_dense_float_float", "library": "metal_basic", "body": "b", "outcome": outcome, "reason": EVIL,
         "operator": name, "inputs": {"case": EVIL, "x": "1000.0", "y": "0.1"}, "where": where, "bound_ulp": 2.0,
         "max_ulp": 8.0, "cpu_ulp": 0.5, "profile": [0.0] * 32 + [5.0] * 32}
        for name, outcome in (("remainder", "wrong"), ("fmod", "race"), ("add", "passed"), ("sub", "misfit"))
    ]  # fmt: skip
    counts = {"kernels": 4, "compiled": 4, "bound": 4, "run": 4}
    document = {"target": EVIL, "torch": "2.15.0", "verdict": "findings", "seed": 3, "coverage": counts}
    document |= {"libraries": {"metal_basic": counts}, "kernels": rows}
    yield "kernels page", html_fault, kernels_page.render([document, document])
    for row in rows[:2]:
        script = kernels_repro.render_script(document, row)
        yield "kernel issue", markdown_fault, kernels_repro.render_issue(document, row, script, "repro.py")


def of_fleet() -> Documents:
    here = {"recipe": "nightly", "run": "https://example.org/run/1"}
    cases = [{"id": f"{name}{EVIL}", "outcome": "failed", "reason": EVIL} for name in "ab"]
    night = {"verdict": "regressed", "partial": False, "torch": {"version": "2.16.0", "commit": EVIL}, "cases": cases}
    build = {"exit_code": 8, "cause": "compile", "error": EVIL, "hint": EVIL}
    seen = [look_at_record(night, place="macos-15", **here), look_at_build(build, **here)]
    actions = decide(seen, [])
    assert actions
    for action in actions:
        yield "issue of a night", markdown_fault, action.body


def of_builds() -> Documents:
    state = State(question={"ask": EVIL}, good="2.0.0", bad="2.1.0", stages=[])
    yield "bisection", markdown_fault, bisection.markdown(state, ())
    part = compared("files", ["a", EVIL], ["a"], [])
    yield (
        "parity",
        markdown_fault,
        parity_page(
            WholeParity(official="torch.whl", parts=(part,), shaders={"a": True}),
            wheel="torch-2.6.0+rehearsal.linux.whl",
            command="nox -s rehearse -- v2.6.0 --darwin --wheel",
            findings=[{"level": "warning", "rule": "M12", "member": EVIL, "evidence": EVIL}],
            fakes={"onnx": 3},
            missing=["distributed"],
        ),
    )


def _strange(model: Any, document: dict[str, Any], text: str) -> Any:
    """Return a record whose texts are all this one, wherever its form takes it."""

    def put(node: Any, path: tuple[Any, ...]) -> None:
        for key, value in list(node.items() if isinstance(node, dict) else enumerate(node)):
            if isinstance(value, dict | list):
                put(value, (*path, key))
            elif isinstance(value, str):
                node[key] = text
                try:
                    model.model_validate_json(json.dumps(document))
                except ValueError:
                    node[key] = value

    put(document, ())
    return model.model_validate_json(json.dumps(document))


def strange_documents(text: str) -> Iterator[tuple[str, str, bool]]:
    """Yield name, HTML, and whether it was Markdown, of each report of records that hold this text everywhere."""
    night = _strange(Record, record().model_dump(mode="json", by_alias=True), text)
    assert text in (night.known_issues[0].link, night.notes[0], night.cases[0].id)
    yield "verify page", html.render(night), False
    yield "verify summary", rendered(markdown.render(night)), True
    script = repro.render_script(night, night.cases[0], {"test_x": "x = 1\n"})
    yield "issue", rendered(repro.render_issue(night, night.cases[0], script, "repro_x.py")), True
    recorded = load_benchmark(RECORDED / "records" / "benchmark-cuda-h200-torch-2.11.0.json")
    measured = _strange(BenchmarkRecord, recorded.model_dump(mode="json", by_alias=True), text)
    assert text in (measured.rows[0].name, measured.statement)
    yield "benchmark page", benchmark_page.render(measured), False
    yield "benchmark summary", rendered(benchmark_page.markdown(measured)), True
    found = [look_at_record(json.loads(night.model_dump_json()), recipe="nightly", place=text, run="u")]
    found += [
        look_at_build({"exit_code": 8, "cause": text, "error": text, "triage": {"cause": text}}, recipe="n", run="u")
    ]
    for action in decide(found, []):
        yield "issue of a night", rendered(action.body), True
    counts = {"kernels": 1, "compiled": 1, "bound": 1, "run": 1}
    row = {"name": text, "library": text, "body": text, "outcome": "wrong", "reason": text, "operator": text,
           "inputs": {text: text}, "where": {"got": text, "want": text}}  # fmt: skip
    kernels = {"target": text, "torch": text, "verdict": text, "seed": 3, "coverage": counts, "kernels": [row]}
    kernels |= {"libraries": {text: counts}}
    yield "kernels page", kernels_page.render([kernels]), False
    yield "kernel issue", rendered(kernels_repro.render_issue(kernels, row, "", "repro.py")), True
    yield (
        "bisection",
        rendered(bisection.markdown(State(question={"ask": text}, good="2.0.0", bad="2.1.0", stages=[]), ())),
        True,
    )


@pytest.mark.parametrize("text", ACTS)
def test_what_a_stranger_wrote_does_nothing_in_any_report(text: str) -> None:
    found = list(strange_documents(text))

    assert len(found) >= 9
    faults = {name: acts for name, each, is_part in found if (acts := what_acts(each, is_part=is_part))}
    assert faults == {}


def test_what_acts_is_seen() -> None:
    assert what_acts("<p>@all <img src=x> <a href='javascript:x' onclick=y>z</a></p>", is_part=True) == [
        "<img>",
        "href='javascript:x'",
        "onclick='y'",
        "@all",
    ]
    assert what_acts("<title>a</title><script>x</script><p style='left:1px'>")
    assert not what_acts(rendered("`@all` [a](https://example.org)"), is_part=True)


def of_this_repository() -> Documents:
    for path, text in generated_files(ROOT):
        if path.suffix == ".md" and not (path.is_file() and path.read_text(encoding="utf-8") == text):
            yield str(path.relative_to(ROOT)), markdown_fault, text
    for path in sorted([*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md"), *(ROOT / "tests").glob("*/README.md")]):
        yield str(path.relative_to(ROOT)), markdown_fault, path.read_text(encoding="utf-8")
    for path in sorted((ROOT / "docs").rglob("*.svg")):
        yield str(path.relative_to(ROOT)), svg_fault, path.read_text(encoding="utf-8")


@pytest.mark.parametrize("documents", [of_verify, of_benchmark, of_kernels, of_fleet, of_builds, of_this_repository])
def test_what_is_written_is_read_strictly(documents: Callable[[], Documents]) -> None:
    found = list(documents())

    assert found
    assert {name: fault for name, check, text in found if (fault := check(text)) is not None} == {}


def test_what_commands_write_is_read_strictly(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MPS_BUILD_WORK", str(tmp_path / "work"))
    coverage, report, chart = (tmp_path / name for name in ("coverage.html", "report.html", "chart.svg"))
    sides = [str(RECORDED / "op_coverage" / f"{name}-source.json") for name in ("v1.13.1", "v2.6.0")]
    build = tmp_path / f"<build>&{'x' * 10}"
    build.mkdir()
    for name in ("ninja_log", "build.ninja"):
        target = build / (".ninja_log" if name == "ninja_log" else name)
        target.write_bytes((RECORDED / "ninja_logs" / "v2.6.0-darwin" / name).read_bytes())

    assert main("op_coverage", [sides[0], "--against", sides[1], "--html", str(coverage)]) == 0
    assert main("build_report", [str(build), "--html", str(report), "--svg", str(chart)]) == 0

    assert [html_fault(path.read_text(encoding="utf-8")) for path in (coverage, report)] == [None, None]
    assert svg_fault(chart.read_text(encoding="utf-8")) is None


@pytest.mark.parametrize(
    ("check", "broken", "said"),
    [
        (html_fault, "<!doctype html><html><head><title>a</title></head><body><p><b>x</p></body></html>", "end"),
        (html_fault, "<!doctype html><head><title>a</title></head><body><sentence>x</sentence></body>", "no such"),
        (markdown_fault, "# a\n\n<details><sentence>x</summary>\n\n```\nb\n```\n\n</details>\n", "summary"),
        (markdown_fault, "# a\n\n<details><summary>x</summary>\n\n```\n</details>\n```\n", "end of file"),
        (markdown_fault, "text\n| a | b |\n|---|\n| 1 |\n", "table"),
        (svg_fault, "<svg><g></svg>", "mismatched"),
    ],
)  # fmt: skip
def test_a_broken_document_is_seen(check: Check, broken: str, said: str) -> None:
    assert said in str(check(broken))


def test_the_pages_of_an_index(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from http_servers import TORCH, publish, wheel

    summary = tmp_path / "summary.md"
    monkeypatch.setenv("GITHUB_STEP_SUMMARY", str(summary))
    name = wheel(tmp_path / "wheelhouse", "torch", TORCH, requires=("filelock",)).name
    wheel(tmp_path / "wheelhouse", "torchvision", "0.21.0+mps.g7af6987", requires=("torch==2.6.0",))
    publish(tmp_path / "wheelhouse")
    publish(tmp_path / "wheelhouse", "--yank", name, "--reason", 'wrong <b>answers</b> & "more"')

    pages = sorted((tmp_path / "site").rglob("*.html"))
    assert len(pages) >= 4
    assert {page.name: fault for page in pages if (fault := html_fault(page.read_text(encoding="utf-8")))} == {}
    assert json.loads((tmp_path / "reported.json").read_text(encoding="utf-8"))["exit_code"] == 0
    assert markdown_fault(summary.read_text(encoding="utf-8")) is None
