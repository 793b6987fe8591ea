"""The scripts that `repro` writes for kernels are run: right, wrong, not tried and failed are four exit statuses."""

from __future__ import annotations

import json
import os
import runpy
import subprocess
import sys
from collections.abc import Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
from mps_build.cli import main
from mps_build.commands.shared.kernels import environment, reference_python
from mps_build.commands.shared.wheels import find_wheel
from mps_build.common.console import Console
from mps_build.common.cores import usable_cores, with_share
from mps_build.common.workspace import cache_folder
from mps_build.kernels.execution.selection import Choice
from mps_build.kernels.execution.verify_all import FOUND, Request, load_fault, verify
from mps_build.kernels.families.shared.contracts import load_contracts
from mps_build.kernels.judge.known import load_known
from mps_build.kernels.judge.references import load_references
from mps_build.kernels.read.library import BASIC
from mps_build.kernels.read.wheel import read_libraries
from mps_build.kernels.report import repro
from mps_build.kernels.report.document import kernel_row
from mps_build.kernels.report.repro import render_issue, render_script
from processes import environ
from shared import kernel_faults
from small_records import WRONG_KERNEL, found_row, kernels_record

PYTHON = os.environ.get("MPS_BUILD_TORCH_PYTHON", "")


FAULT = """
import contextlib
from torch.overrides import TorchFunctionMode
import torch

class Wrong(TorchFunctionMode):
    def __torch_function__(self, function, types, args=(), kwargs=None):
        done = function(*args, **(kwargs or {}))
        return done + 1 if function is torch.remainder else done
"""


# Faults by rule, drawn from several seeds: the first that is noticed will do.
FAULTS = f"""
import importlib.util, random, sys
spec = importlib.util.spec_from_file_location("kernel_faults", {kernel_faults.__file__!r})
kernel_faults = sys.modules["kernel_faults"] = importlib.util.module_from_spec(spec)
spec.loader.exec_module(kernel_faults)

def drawn(text, seed):
    fault = kernel_faults.draw(text, random.Random(seed))
    return kernel_faults.inject(text, fault) if fault else text
"""


SEEDS = range(8)


AT_LEAST = 30


needs_torch = pytest.mark.skipif(
    not PYTHON, reason="no torch here; MPS_BUILD_TORCH_PYTHON names an interpreter with it"
)


def _document(row: Mapping[str, Any]) -> dict[str, Any]:
    return {"target": "w.whl", "torch": "2.15.0", "seed": 3, "kernels": [row]}


@needs_torch
def test_a_script_that_asks_torch_has_four_ends(tmp_path: Path) -> None:
    (tmp_path / "fault.py").write_text(FAULT)
    row = {
        "name": "remainder_dense_float_float",
        "outcome": "wrong",
        "reason": "9 of 4099 elements differ",
        "inputs": {"x": "1000.0", "y": "0.1"},
        "reference": {
            "form": "expression",
            "name": "remainder",
            "expression": "torch.remainder(x, y)",
            "types": {"x": "float32", "y": "float32"},
        },
    }
    script = tmp_path / "repro.py"
    script.write_text(render_script(_document(row), row))

    def run(*options: str) -> int:
        return subprocess.run([PYTHON, script, *options], capture_output=True, check=False).returncode

    assert 15 <= len(script.read_text().splitlines()) <= 80
    ends = [run("--device", "cpu"), run("--device", "cpu", "--inject", f"{tmp_path / 'fault.py'}:Wrong"), run()]
    assert [*ends, run("--device", "cpu", "--inject", "nowhere.py:Wrong")] == [0, 1, 2, 3]


@pytest.mark.parametrize("reference", [{}, {"form": "expression", "name": "remainder"}])
def test_every_form_of_script_is_short_and_takes_the_old_option(
    reference: dict[str, Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    said = {**reference, "expression": "torch.remainder(x, y)", "types": {"x": "float32", "y": "float32"}}
    row = {"name": "remainder_dense_float_float", "outcome": "wrong", "inputs": {"x": "1e3", "y": "-inf"}}
    script = render_script(_document({**row, "reference": said}), {**row, "reference": said})

    assert ("EXPRESSION" in script) == bool(reference)
    assert 15 <= len(script.splitlines()) <= 80

    (tmp_path / "repro.py").write_text(script)
    monkeypatch.setitem(sys.modules, "torch", None)
    monkeypatch.setenv("PATH", str(tmp_path))  # nor is mps-build there

    def run(*options: str) -> str | int | None:
        monkeypatch.setattr(sys, "argv", ["repro.py", *options])
        with pytest.raises(SystemExit) as ended:
            runpy.run_path(str(tmp_path / "repro.py"), run_name="__main__")
        return ended.value.code

    assert run("--help") == 0
    helped = capsys.readouterr().out
    assert ("--inject" in helped, "--plant" in helped) == (True, False)
    assert run("--plant", "nowhere.py:Wrong") == (3 if reference else 2)
    assert "note: --plant is now --inject" in capsys.readouterr().err


def test_a_finding_of_large_tensors_is_found_again_with_large_tensors() -> None:
    inputs = {"case": "2 rows of 5", "moved": "across 2**31 elements of dv", "call": "torch.sort(x, 0)"}
    row = {"name": "mb_sort_block_float_tptg32", "outcome": "out_of_bounds", "inputs": inputs}
    small = {**row, "inputs": {"case": "2 rows of 5"}}

    for each, is_large in ((row, True), (small, False)):
        script = render_script(_document(each), each)
        assert ("MORE = ['--large']" in script) is is_large
        assert ("--seed 3 --large" in render_issue(_document(each), each, script, "repro.py")) is is_large
    assert "*MORE" in script


@needs_torch
@pytest.mark.parametrize(
    ("expression", "types", "inputs"),
    [
        ("torch.bitwise_xor(x, y)", {"x": "int32", "y": "int32"}, {"x": "5", "y": "-3"}),
        ("torch.logical_and(x, y)", {"x": "bool", "y": "bool"}, {"x": "True", "y": "False"}),
        ("x * y", {"x": "complex64", "y": "complex64"}, {"x": "(1+2j)", "y": "(-0.5+infj)"}),
    ],
)
def test_numbers_of_every_kind_can_be_computed(
    expression: str, types: dict[str, str], inputs: dict[str, str], tmp_path: Path
) -> None:
    references = load_references()
    name = next(name for name, each in references.items() if each.get("expr") == expression)
    said = {"form": "expression", "name": name, "expression": expression, "types": types}
    row = {"name": "k", "outcome": "wrong", "inputs": inputs, "reference": said}
    (tmp_path / "repro.py").write_text(render_script(_document(row), row))

    done = subprocess.run(
        [PYTHON, tmp_path / "repro.py", "--device", "cpu"], capture_output=True, check=False, text=True
    )

    assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.slow
@needs_torch
def test_thirty_subjects_show_the_wrong_element_of_a_wrong_kernel_and_none_of_the_right_one(tmp_path: Path) -> None:
    """Kernels of the official 2.15.0 get a fault and are recorded; their scripts are run with the fault and without."""
    one = "\ndef seed{0}(text):\n    return drawn(text, {0})\n"
    (tmp_path / "faults.py").write_text(FAULTS + "".join(one.format(seed) for seed in SEEDS))
    tool = tmp_path / "bin" / "mps-build"
    tool.parent.mkdir()
    tool.write_text(f"#!{sys.executable}\nimport sys\nfrom mps_build.cli import main\nsys.exit(main())\n")
    tool.chmod(0o755)
    wheel, _ = find_wheel("torch==2.15.0", None, Console())
    caught = _caught(wheel, tmp_path)
    scripts = [_script(row, fault, wheel, tmp_path) for row, fault in caught]
    with ThreadPoolExecutor(usable_cores()) as pool:
        shown = list(pool.map(lambda each: _shown(*each, wheel=wheel, folder=tmp_path), scripts))
    assert len(shown) >= AT_LEAST, shown


def _caught(wheel: Path, folder: Path) -> list[tuple[dict[str, Any], str]]:
    """Return for each subject the row of a kernel whose fault was noticed, and the fault.

    One run tries one fault on all subjects that are left: what a run costs is mostly its start.
    """
    left, found = dict(_kernels(wheel)), list[tuple[dict[str, Any], str]]()
    libraries = tuple(sorted(read_libraries(wheel), key=lambda each: each.name != BASIC))
    for seed in SEEDS:
        if not left:
            break
        fault = f"{folder / 'faults.py'}:seed{seed}"
        request = Request(
            libraries=libraries[:1],
            version="2.15.0",
            python=reference_python(Console()),
            environ=environment(),
            cache=cache_folder() / "kernels",
            choice=Choice(names=frozenset(name for names in left.values() for name in names)),
            fault=load_fault(fault),
        )
        rows = {row.name: row for row in verify(request, Console())}
        for subject, names in list(left.items()):
            noticed = next((rows[name] for name in names if rows[name].outcome in FOUND), None)
            if noticed is not None:
                found.append((kernel_row(noticed), fault))
                del left[subject]
    return found


def _script(row: dict[str, Any], fault: str, wheel: Path, folder: Path) -> tuple[dict[str, Any], str, Path]:
    record, script = folder / "kernels.json", folder / f"{row['name']}.py"
    document = {**_document(row), "schema": "mps-build/kernels/1", "target": str(wheel), "verdict": "findings"}
    counts = {"kernels": 1, "compiled": 1, "bound": 1, "run": 1}
    record.write_text(json.dumps({**document, "seed": 0, "coverage": counts, "libraries": {BASIC: counts}}))
    main("repro", [str(record), row["name"], "--output", str(script), "--issue", str(folder / "issue.md")])
    if "EXPRESSION" in script.read_text():
        elsewhere = {**_document(row), "target": str(wheel), "torch": None}
        script.write_text(render_script({**elsewhere, "seed": 0}, {**row, "reference": {}}))
    return row, fault, script


def _shown(row: dict[str, Any], fault: str, script: Path, *, wheel: Path, folder: Path) -> str:
    wrong, right = (_run(script, wheel, folder, *options) for options in (("--inject", fault), ()))
    assert (wrong.returncode, right.returncode) == (1, 0), (row["name"], wrong.stdout, wrong.stderr, right.stdout)
    got = str(row.get("where", {}).get("got", ""))
    assert got in wrong.stdout, (row["name"], got, wrong.stdout)
    assert right.stdout.endswith("right\n")
    return str(row["name"])


def _kernels(wheel: Path) -> Iterator[tuple[str, list[str]]]:
    """Return some kernels of two subjects of each family, by the first word of their forms: floats first, of each form
    one; not known ones, wrong as they are."""
    names = sorted(
        (each.name for each in read_libraries(wheel)[0].functions),
        key=lambda name: ("float" not in name, len(name), name),
    )
    known = [row for row in load_known() if row.is_of("2.15.0")]
    names = [name for name in names if not any(row.means(name) for row in known)]
    subjects: dict[str, dict[str, list[str]]] = {}
    for row in load_contracts():
        if (name := next((name for name in names if row.pattern.fullmatch(name)), None)) is not None:
            subjects.setdefault(row.folder, {}).setdefault(row.family.partition("_")[0], []).append(name)
    for folder, found in subjects.items():
        for subject, kernels in list(found.items())[:2]:
            yield f"{folder}: {subject}", list(dict.fromkeys(kernels))[:3]


def _run(script: Path, wheel: Path, folder: Path, *options: str) -> subprocess.CompletedProcess[str]:
    given = with_share(environ(PATH=f"{folder / 'bin'}:{os.environ['PATH']}"), usable_cores())
    argv = [sys.executable, str(script), str(wheel), *options]
    return subprocess.run(argv, env=given, capture_output=True, text=True, check=False)


RACE = found_row(
    "cummin_innermost_float", outcome="race", reason="threads 127 and 31 meet", inputs={"case": "(2, 1030)"}
)


def test_an_element_becomes_a_script_that_needs_torch_alone(tmp_path: Path) -> None:
    script = repro.render_script(kernels_record(WRONG_KERNEL), WRONG_KERNEL)
    issue = repro.render_issue(kernels_record(WRONG_KERNEL), WRONG_KERNEL, script, "repro.py")

    compile(script, "repro.py", "exec")
    assert "EXPRESSION = 'torch.remainder(x, y)'" in script
    assert "INPUTS = {'x': 1000.0, 'y': 0.1}" in script
    assert "import mps_build" not in script
    assert "--kernel remainder_dense_float_float --seed 3" in issue
    assert "It was not run on a GPU." in issue


def test_what_torch_cannot_compute_runs_the_kernel_again(tmp_path: Path) -> None:
    tool = tmp_path / "mps-build"
    tool.write_text(
        f"#!{sys.executable}\nimport json, sys\nfile = sys.argv[sys.argv.index('--json') + 1]\n"
        "record = ['verify_kernels', 'torch==2.15.0', '--kernel', 'cummin_innermost_float', '--seed', '3']\n"
        "assert sys.argv[1:7] == record\n"
        "open(file, 'w').write(json.dumps({'kernels': [{'name': 'k', 'library': 'metal_basic', 'outcome': 'race'}]}))\n"
    )
    tool.chmod(0o755)
    (tmp_path / "again.py").write_text(repro.render_script(kernels_record(RACE), RACE))

    done = subprocess.run([sys.executable, tmp_path / "again.py"], env={"PATH": str(tmp_path)}, check=False)

    assert done.returncode == 1


def test_a_reference_that_is_a_function_is_not_taken_for_an_expression() -> None:
    """`constant_pad_nd_dense_float`: its script once had torch compute the identity."""
    said = {
        "form": "function",
        "name": "nn_constant_pad",
        "expression": "",
        "dtype": "float32",
        "types": {"x": "float32"},
    }

    script = repro.render_script(kernels_record(WRONG_KERNEL), {**WRONG_KERNEL, "reference": said})

    assert "EXPRESSION" not in script
    assert "verify_kernels" in script


def test_a_record_names_an_expression_and_never_brings_one() -> None:
    said = {**WRONG_KERNEL["reference"], "expression": "x or __import__('os').system('evil')"}

    script = repro.render_script(kernels_record(WRONG_KERNEL), {**WRONG_KERNEL, "reference": said})

    assert "evil" not in script


def test_a_script_of_a_kernel_that_passed_calls_nothing_wrong(tmp_path: Path) -> None:
    """It looked for the outcome on record, whatever that was."""
    tool = tmp_path / "mps-build"
    tool.write_text(
        f"#!{sys.executable}\nimport json, sys\nfile = sys.argv[sys.argv.index('--json') + 1]\n"
        "row = {'name': 'k', 'library': 'metal_basic', 'outcome': 'passed'}\n"
        "open(file, 'w').write(json.dumps({'kernels': [row]}))\n"
    )
    tool.chmod(0o755)
    (tmp_path / "again.py").write_text(repro.render_script(kernels_record(RACE), {**RACE, "outcome": "passed"}))

    done = subprocess.run([sys.executable, tmp_path / "again.py"], env={"PATH": str(tmp_path)}, check=False)

    assert done.returncode == 0


@pytest.mark.parametrize(("found", "effect"), [(WRONG_KERNEL, "wrong result"), (RACE, "race")])
def test_a_title_says_the_effect_and_never_that_it_is_known(found: dict[str, Any], effect: str) -> None:
    text = repro.render_issue(kernels_record(found), {**found, "outcome": "known"}, "", "repro.py")

    assert text.splitlines()[0].endswith(f": {effect}")


@pytest.mark.parametrize("value", ["__import__('os').system('x')", "1.0); evil(", "[1, 2]", ""])
def test_a_record_puts_no_code_into_the_script(value: str) -> None:
    hostile = {**WRONG_KERNEL, "inputs": {"x": value, "y": "1.0"}, "name": "remainder_dense_float_float'''\nevil()"}

    script = repro.render_script(kernels_record(hostile), hostile)

    compile(script, "repro.py", "exec")
    assert "\nevil()" not in script
    assert "EXPRESSION" not in script


def test_the_command_writes_both_and_names_what_there_is(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    record = tmp_path / "kernels.json"
    record.write_text(json.dumps(kernels_record(WRONG_KERNEL, RACE)))
    options = ["--output", str(tmp_path / "r.py"), "--issue", str(tmp_path / "r.md")]

    assert main("repro", [str(record), WRONG_KERNEL["name"], *options]) == 0
    assert (tmp_path / "r.py").exists()
    assert "remainder" in (tmp_path / "r.md").read_text()
    assert main("repro", [str(record), "remainder", *options]) == 2
    assert "cummin_innermost_float" in capsys.readouterr().err


def _row(name: str, outcome: str, inputs: dict[str, str], got: str = "1.0", want: str = "2.0") -> dict[str, Any]:
    where = {"got": got, "want": want}
    return {"name": name, "library": "b", "outcome": outcome, "reason": "r", "inputs": inputs, "where": where}


def test_an_issue_of_a_race_explains_threads_addresses_and_the_missing_barrier() -> None:
    row = _row("cummin_innermost_float", "known", {})

    text = repro.render_issue({"torch": "2.15.0", "seed": 0}, row, "print()", "repro.py")

    assert all(word in text for word in ("threads 127 and 31 meet at byte 8", "without a barrier", "**Cause**"))
    assert "and `F = torch.nn.functional`:\n\n- `torch.cummin(" in text
    older = repro.render_issue({"torch": "2.6.0", "seed": 0}, row, "print()", "repro.py")
    assert "**Cause**" not in older
