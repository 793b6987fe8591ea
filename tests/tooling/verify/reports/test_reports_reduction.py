"""A failing case as a short script, reduced on a device or from the record: right without a fault, wrong with one."""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path
from typing import Any

import pytest
from mps_build.cli import main
from mps_build.common.records.device_record import Case, Finding, Record, Torch, write_record
from mps_build.verify.reports.reduction import Reduction, ReductionDevice, reduce_case
from mps_build.verify.reports.repro import embed, render_issue, render_script

PYTHON = os.environ.get("MPS_BUILD_TEST_TORCH") or os.environ.get("MPS_BUILD_TORCH_PYTHON") or ""
needs_torch = pytest.mark.skipif(not PYTHON, reason="no torch here; MPS_BUILD_TEST_TORCH names a Python that has it")
FAULT = """\
import torch
from torch.utils._python_dispatch import TorchDispatchMode
class doubled(TorchDispatchMode):
    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        answer = func(*args, **(kwargs or {}))
        return answer * 2 + 1 if str(func).startswith("aten.exp.") and answer.is_floating_point() else answer
"""
# Runs a script with the fault around what it does on the device alone.
ENGINE_AGAIN = """\
import re, sys
from fault import doubled
def faulty(run, device):
    with doubled():
        return run(device)
text, found = re.subn(r"(?<!def )\\brun\\(device\\)", "faulty(run, device)", open(sys.argv.pop(1)).read())
assert found == 1
exec(text)
"""


def _drawn_record(folder: Path, finding: dict[str, Any] | None, case: str = "exp:common:0") -> Path:
    found = () if finding is None else (Finding(**finding),)
    wrong = Case(id=case, layer="drawn", outcome="failed", reason="off", finding=(found and found[0].id) or None)
    record = Record(
        tool="mps-build 0",
        statement="A rehearsal.",
        verdict="regressed",
        exit_code=10,
        partial=False,
        device="mps",
        target={},
        torch=Torch(version="2.13.0"),
        started="2026-11-29T08:00:00+00:00",
        seconds=1.0,
        findings=found,
        cases=(wrong.model_copy(update={"file": "test_drawn.py"}),),
    )
    write_record(record, folder / "record.json")
    return folder / "record.json"


EXP = {
    "id": "exp:common:1",
    "operator": "exp",
    "transformation": "common",
    "size": "small",
    "shape": (1, 2),
    "number": 5,
}


def _repro(folder: Path, record: Path, *more: str) -> tuple[int, dict[str, Any]]:
    files = ["--output", str(folder / "r.py"), "--issue", str(folder / "i.md"), "--json", str(folder / "r.json")]
    status = main("repro", [str(record), "exp:common:0", *files, *more])
    return status, json.loads((folder / "r.json").read_text())


def _ends(folder: Path, *argv: str) -> int:
    return subprocess.run([PYTHON, *argv], cwd=folder, capture_output=True, check=False).returncode


@needs_torch
@pytest.mark.parametrize("on_device", [True, False], ids=["on_a_device", "from_the_record"])
def test_the_script_is_short_and_says_right_wrong_not_tried_or_its_own_fault(tmp_path: Path, on_device: bool) -> None:
    (tmp_path / "fault.py").write_text(FAULT)
    (tmp_path / "runner.py").write_text(ENGINE_AGAIN)
    options = ("--device", "cpu", "--inject", f"{tmp_path / 'fault.py'}:doubled") if on_device else ()

    status, document = _repro(tmp_path, _drawn_record(tmp_path, EXP), "--python", PYTHON, *options)

    script = (tmp_path / "r.py").read_text()
    assert (status, document["not_reduced"]) == (0, None)
    assert len(script.splitlines()) <= 40
    assert {line.split()[1] for line in script.splitlines() if line.startswith(("import", "from"))} <= {"sys,", "math"}
    assert _ends(tmp_path, "r.py", "cpu") == 0
    assert _ends(tmp_path, "runner.py", "r.py", "cpu") == 1
    assert _ends(tmp_path, "r.py") == 2
    (tmp_path / "own.py").write_text(script.replace("exp(", "no_such("))
    assert _ends(tmp_path, "own.py", "cpu") == 3
    assert "exp, float32" in (tmp_path / "i.md").read_text()


@needs_torch
def test_what_a_record_says_is_never_written_into_a_script(tmp_path: Path) -> None:
    hostile = {**EXP, "script": "import os; os.system('x')", "levels": {"@dtype": "x; import os"}}

    status, document = _repro(tmp_path, _drawn_record(tmp_path, hostile), "--python", PYTHON)

    assert status == 2
    assert "of another version" in str(document)
    assert not (tmp_path / "r.py").exists()


def test_without_a_torch_nothing_is_written_and_the_way_is_said(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MPS_BUILD_TORCH_PYTHON", str(tmp_path / "none"))

    status, document = _repro(tmp_path, _drawn_record(tmp_path, {**EXP, "script": "import os"}))

    assert (status, "--python" in document["hint"]) == (2, True)
    assert not (tmp_path / "r.py").exists()


ROOT = Path(__file__).parents[4]
SUITE = ROOT / "tests" / "device"
RUNNER = ROOT / "tests" / "tooling" / "fakes" / "many_scripts.py"
FAULTY = json.loads((ROOT / "tests" / "tooling" / "fixtures" / "faulty_cases.json").read_text(encoding="utf-8"))
LEAST_LINES, MOST_LINES, MOST_BYTES = 15, 80, 60_000
ROWS = os.environ.get("MPS_BUILD_REPRO_ROWS") or ""
# Drawn cases have scripts of their own.
FOLDERS = {path.name: path.parent.name for path in SUITE.glob("*/test_*.py")}
# The fault shows in a whole network alone: docs/verify/repro.md.
STAYS_LONG = {"models-cnn-step", "smoke-synchronise", "transfer-to-host-empty-float32"}  # docs/verify/repro.md
PARTS = 6  # a part is a few cases of several layers; CI runs the first


def _record(case: Case, device: str = "mps") -> Record:
    return Record(
        tool="mps-build 0",
        statement="A rehearsal.",
        verdict="regressed",
        exit_code=10,
        partial=False,
        device=device,
        target={},
        torch=Torch(version="2.13.0"),
        started="2026-11-25T19:00:00+00:00",
        seconds=1.0,
        cases=(case,),
    )


def _case(faulty: dict[str, str], reason: str = "Mismatch: fresh: out[0]: off by 1") -> Case:
    return Case(
        id=faulty["case"],
        layer=FOLDERS.get(faulty["file"], "regressions"),
        outcome="failed",
        reason=reason,
        file=faulty["file"],
    )


def _faults(folder: Path, faulty: list[dict[str, str]]) -> Path:
    file = folder / "faults.py"
    found_at = str(ROOT / "tests" / "sensitivity")
    head = f"import sys\nsys.path.append({found_at!r})\nfrom fresh_faults import Fault\n"
    head += "from mechanisms import SCALED, TAIL\n"
    each = [f"p{n} = Fault({one['overload']!r}, {one['kind'].upper()}, '')" for n, one in enumerate(faulty)]
    file.write_text(head + "\n".join(each) + "\n", encoding="utf-8")
    return file


def _row(one: dict[str, Any]) -> dict[str, Any]:
    """Return what the table says of a case: the script that a user gets, and how it ended without a fault and with."""
    case = _case(one)
    is_short = "script" in one
    script = one["script"] if is_short else Path(one["whole"]).read_text(encoding="utf-8")
    reported = {"facts": one} if is_short else {"why_long": str(one.get("refused", ""))}
    return {
        "case": case.id,
        "layer": case.layer,
        "lines": len(script.splitlines()),
        "characters": len(script),
        "issue_bytes": len(render_issue(_record(case), case, script, "repro.py", **reported).encode()),
        "ends": (one["ends"] if is_short else one["whole_ends"])[:2],
        "is_short": is_short,
    }


def test_the_faulty_cases_are_of_many_files_of_both_folders() -> None:
    assert len(FAULTY) - len(STAYS_LONG) >= 15
    assert {FOLDERS[one["file"]] for one in FAULTY} == {"regressions", "scenarios"}
    assert len({one["file"] for one in FAULTY}) >= 20


@needs_torch
@pytest.mark.parametrize("part", range(PARTS), ids=lambda part: f"part{part}")
def test_faulty_cases_are_right_without_a_fault_and_wrong_with_one_in_both_forms(part: int, tmp_path: Path) -> None:
    mine = FAULTY[part::PARTS]
    faults = _faults(tmp_path, mine)
    jobs: list[dict[str, Any]] = []
    for number, faulty in enumerate(mine):
        case = _case(faulty)
        whole = tmp_path / f"whole{number}.py"
        whole.write_text(render_script(_record(case, "cpu"), case, embed(SUITE, faulty["file"], case.id)))
        jobs.append({**faulty, "fault": f"{faults}:p{number}", "whole": str(whole)})
    (tmp_path / "jobs.json").write_text(json.dumps(jobs))

    argv = [PYTHON, "-W", "ignore", str(RUNNER), str(tmp_path / "jobs.json")]
    done = subprocess.run(argv, cwd=SUITE, capture_output=True, text=True, check=False)

    found = [json.loads(line) for line in done.stdout.splitlines()]
    assert len(found) == len(jobs), done.stderr[-2000:]
    if ROWS:
        rows = [_row(one) for one in found]
        (Path(ROWS) / f"part{part}.json").write_text(json.dumps(rows), encoding="utf-8")
    assert not {one["case"]: one["whole_ends"] for one in found if one["whole_ends"][:2] != [0, 1]}
    assert not {one["case"]: one["ends"] for one in found if one.get("ends", [0, 1])[:2] != [0, 1]}
    short = [one for one in found if "script" in one]
    long = {one["case"]: one.get("refused") for one in found if "script" not in one}
    assert long.keys() <= STAYS_LONG, long
    for one in short:
        script, case = one["script"], _case(one)
        assert LEAST_LINES <= len(script.splitlines()) <= MOST_LINES, one["case"]
        issue = render_issue(_record(case), case, script, "repro.py", facts=one)
        assert len(issue.encode()) < MOST_BYTES
        title = issue.splitlines()[0].replace("\\", "")  # Markdown's own
        assert one["operator"] in title and one["dtype"] in title and "known" not in title


@pytest.fixture(scope="module")
def short() -> Reduction:
    """A script made where the record's device is not: the record names the output."""
    case = _case({"case": "issue-131750", "file": "test_norms.py"})
    return reduce_case(SUITE, _record(case), case, ReductionDevice(python=Path(PYTHON)), "words")


@needs_torch
@pytest.mark.parametrize(
    ("options", "status", "says"),
    [
        (("--device", "cpu"), 0, "right"),
        (("--device", "cpu", "--inject", "{fault}"), 1, "WRONG"),
        (("--device", "hpu"), 2, "not tried: no device hpu"),
        (("--device", "cpu", "--inject", "nowhere.py:fault"), 3, "this script failed"),
    ],
)
def test_a_short_script_made_without_a_device_has_four_ends(
    options: tuple[str, ...], status: int, says: str, short: Reduction, tmp_path: Path
) -> None:
    fault = f"{_faults(tmp_path, [{'overload': 'aten.native_layer_norm.default', 'kind': 'scaled'}])}:p0"
    assert short.script is not None, short.refused
    assert (short.ran_on, short.facts["operator"]) == ("", "torch.nn.functional.layer_norm")
    file = tmp_path / "repro.py"
    file.write_text(short.script, encoding="utf-8")

    argv = [PYTHON, str(file), *(one.format(fault=fault) for one in options)]
    done = subprocess.run(argv, capture_output=True, text=True, check=False)

    assert (done.returncode, says in done.stdout) == (status, True), done.stdout + done.stderr


@needs_torch
def test_a_demand_that_names_no_answer_has_no_short_script_of_its_own() -> None:
    """Such a script compared the last answer, which is right, and ended with 0 on the device that had failed."""
    reason = "AssertionError: topk.values [['layout', 2, 'expanded']]: refused, but an operand has changed"
    case = _case({"case": "issue-84288-randperm", "file": "test_random.py"}, reason)

    found = reduce_case(SUITE, _record(case), case, ReductionDevice(python=Path(PYTHON)), "words")

    assert found.script is None and "names no wrong answer" in found.refused


def test_a_script_without_torch_fails_and_says_so(tmp_path: Path) -> None:
    frame = SUITE / "engine" / "reduction" / "frame.py.txt"
    head = "import argparse, contextlib, os, runpy, sys, traceback\nDEVICE, FACTOR = 'mps', 8\n"
    (tmp_path / "torch.py").write_text("raise ImportError('none here')\n")
    (tmp_path / "repro.py").write_text(head + frame.read_text(encoding="utf-8"))

    done = subprocess.run(["python3", "repro.py"], cwd=tmp_path, capture_output=True, text=True, check=False)

    assert (done.returncode, "this script failed" in done.stdout) == (3, True)


def test_titles_end_at_a_word_and_long_scripts_are_named_not_pasted() -> None:
    reason = "Mismatch: row a1b2: answer 0: " + "off by much more than anybody would allow " * 8
    case = _case({"case": "condition-x-float32", "file": "test_conditions_norms.py"}, reason)
    case = case.model_copy(update={"outcome": "known"})

    issue = render_issue(_record(case), case, "x = 1\n" * 60_000, "repro.py", why_long="it is compiled")

    title = issue.splitlines()[0]
    assert len(title) < 140 and title.endswith(" …") and title.split()[-2] in reason.split()
    assert "known" not in title and "row a1b2" not in title
    assert (
        len(issue.encode()) < MOST_BYTES and "record.json" in issue and "repro -- RECORD condition-x-float32" in issue
    )
