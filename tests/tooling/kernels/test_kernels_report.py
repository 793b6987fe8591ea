"""What is made of a run of verify_kernels: the page with its atlas, a finding's script and issue."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from mps_build.cli import main
from mps_build.kernels.report import page, repro


def row(name: str, **more: Any) -> dict[str, Any]:
    return {"name": name, "library": "metal_basic", "body": "b", "outcome": "passed", "reason": "", **more}


WRONG = row(
    "remainder_dense_float_float",
    outcome="wrong",
    operator="remainder",
    reason="9 of 4099 elements differ from torch (remainder): got -1.5e-05, expected 0.0999851",
    inputs={"case": "4099 elements", "x": "1000.0", "y": "0.1"},
    where={"got": "-1.5e-05"},
    reference={
        "form": "expression",
        "name": "remainder",
        "expression": "torch.remainder(x, y)",
        "dtype": "float32",
        "types": {"x": "float32", "y": "float32"},
    },
    bound_ulp=2.0,
    max_ulp=8000000.0,
    cpu_ulp=0.5,
    profile=[0.0] * 32 + [5.0] * 32,
)
RACE = row("cummin_innermost_float", outcome="race", reason="threads 127 and 31 meet", inputs={"case": "(2, 1030)"})


def document(*rows: dict[str, Any], version: str = "2.15.0") -> dict[str, Any]:
    counts = {"kernels": len(rows), "compiled": len(rows), "bound": 1, "run": 1}
    return {
        "target": f"torch-{version}.whl",
        "torch": version,
        "verdict": "findings",
        "seed": 3,
        "coverage": counts,
        "libraries": {"metal_basic": counts},
        "kernels": list(rows),
    }


def test_an_element_becomes_a_script_that_needs_torch_alone(tmp_path: Path) -> None:
    script = repro.render_script(document(WRONG), WRONG)
    issue = repro.render_issue(document(WRONG), WRONG, script, "repro.py")

    compile(script, "repro.py", "exec")
    assert "EXPRESSION = 'torch.remainder(x, y)'" in script
    assert "INPUTS = {'x': 1000.0, 'y': 0.1}" in script
    assert "import mps_build" not in script
    assert "--kernel remainder_dense_float_float --seed 3" in issue
    assert "It was not run on a GPU." in issue


def test_what_torch_cannot_be_asked_runs_the_kernel_again(tmp_path: Path) -> None:
    tool = tmp_path / "mps-build"
    tool.write_text(
        f"#!{sys.executable}\nimport json, sys\nfile = sys.argv[sys.argv.index('--json') + 1]\n"
        "asked = ['verify_kernels', 'torch==2.15.0', '--kernel', 'cummin_innermost_float', '--seed', '3']\n"
        "assert sys.argv[1:7] == asked\n"
        "open(file, 'w').write(json.dumps({'kernels': [{'name': 'k', 'library': 'metal_basic', 'outcome': 'race'}]}))\n"
    )
    tool.chmod(0o755)
    (tmp_path / "again.py").write_text(repro.render_script(document(RACE), RACE))

    done = subprocess.run([sys.executable, tmp_path / "again.py"], env={"PATH": str(tmp_path)}, check=False)

    assert done.returncode == 1


def test_a_reference_that_is_a_function_is_not_taken_for_an_expression() -> None:
    """`constant_pad_nd_dense_float`: the script of it once asked torch for the identity."""
    said = {
        "form": "function",
        "name": "nn_constant_pad",
        "expression": "",
        "dtype": "float32",
        "types": {"x": "float32"},
    }

    script = repro.render_script(document(WRONG), {**WRONG, "reference": said})

    assert "EXPRESSION" not in script
    assert "verify_kernels" in script


def test_a_record_names_an_expression_and_never_brings_one() -> None:
    said = {**WRONG["reference"], "expression": "x or __import__('os').system('evil')"}

    script = repro.render_script(document(WRONG), {**WRONG, "reference": said})

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
    (tmp_path / "again.py").write_text(repro.render_script(document(RACE), {**RACE, "outcome": "passed"}))

    done = subprocess.run([sys.executable, tmp_path / "again.py"], env={"PATH": str(tmp_path)}, check=False)

    assert done.returncode == 0


@pytest.mark.parametrize(("found", "effect"), [(WRONG, "wrong result"), (RACE, "race")])
def test_a_title_says_the_effect_and_never_that_it_is_known(found: dict[str, Any], effect: str) -> None:
    text = repro.render_issue(document(found), {**found, "outcome": "known"}, "", "repro.py")

    assert text.splitlines()[0].endswith(f": {effect}")


@pytest.mark.parametrize("value", ["__import__('os').system('x')", "1.0); evil(", "[1, 2]", ""])
def test_a_record_puts_no_code_into_the_script(value: str) -> None:
    hostile = {**WRONG, "inputs": {"x": value, "y": "1.0"}, "name": "remainder_dense_float_float'''\nevil()"}

    script = repro.render_script(document(hostile), hostile)

    compile(script, "repro.py", "exec")
    assert "\nevil()" not in script
    assert "EXPRESSION" not in script


def test_the_command_writes_both_and_names_what_there_is(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    record = tmp_path / "kernels.json"
    record.write_text(json.dumps(document(WRONG, RACE)))
    options = ["--output", str(tmp_path / "r.py"), "--issue", str(tmp_path / "r.md")]

    assert main("repro", [str(record), WRONG["name"], *options]) == 0
    assert (tmp_path / "r.py").exists()
    assert "remainder" in (tmp_path / "r.md").read_text()
    assert main("repro", [str(record), "remainder", *options]) == 2
    assert "cummin_innermost_float" in capsys.readouterr().err


def test_the_atlas_has_a_column_and_a_line_for_each_release() -> None:
    newer = document(WRONG, row("exp_dense_half_half", operator="exp", family="unary_dense_ilp", profile=[0.5] * 64))
    older = document({**WRONG, "max_ulp": 4.0}, version="2.14.1")

    found = page.entries([newer, older])
    text = page.render([newer, older])

    assert [(each.function, each.kind, each.errors) for each in found] == [
        ("exp", "half", (0.0, None)),
        ("remainder", "float", (8000000.0, 4.0)),
    ]
    assert found[0].inputs == "all 65,536 values"
    assert text.count("<polyline") == 3
    assert "<th>2.15.0</th><th>2.14.1</th>" in text
    assert "libm" in text
    assert "<td>8e+06</td><td>4</td>" in text


def test_the_page_shows_what_was_found_and_escapes_it() -> None:
    hostile = row("<b>k</b>", outcome="wrong", reason="<script>alert(1)</script>")

    text = page.render([document(hostile, {**hostile, "library": "metal_40"})])

    assert "<script>alert" not in text
    assert text.count("&lt;b&gt;k&lt;/b&gt;") == 1
