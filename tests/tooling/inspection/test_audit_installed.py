"""The torch that an interpreter has: the same facts as its wheel's, and nothing of it run."""

from __future__ import annotations

import json
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest
from mps_build import cli
from mps_build.inspection.audit import audit_installed, audit_wheel
from small_wheels import torch_files, write_wheel

INFO = "torch-2.15.0.dist-info"


@pytest.fixture
def site(tmp_path: Path) -> Path:
    """A site-packages with the small torch in it, as pip leaves it."""
    site = tmp_path / "site-packages"
    with zipfile.ZipFile(write_wheel(tmp_path, torch_files())) as archive:
        archive.extractall(site)
    (site / "torch" / "bin" / "torch_shm_manager").chmod(0o755)
    (site / INFO / "INSTALLER").write_text("pip\n")
    with (site / INFO / "RECORD").open("a") as record:
        record.write(f"{INFO}/INSTALLER,,\n../../../bin/torchrun,sha256=abc,3\ntorch/__pycache__/x.pyc,,\n")
    return site


def test_an_installed_torch_has_the_facts_of_its_wheel(site: Path, tmp_path: Path) -> None:
    for quick in (True, False):
        installed = audit_installed(site, INFO, profile="strict", quick=quick)
        wheel = audit_wheel(next(tmp_path.glob("*.whl")), quick=quick)

        assert (installed.verdict, installed.findings, installed.kind) == ("accepted", (), "aot")
        same = ("version", "python", "abi", "platform", "git_version", "macho", "mps_dispatch_headers")
        found, wanted = installed.document()["facts"], wheel.document()["facts"]
        modes = {name: each.pop("mode") for facts in (found, wanted) for name, each in facts["macho"].items()}
        assert modes
        assert {key: found[key] for key in same} == {key: wanted[key] for key in same}


def test_what_was_changed_since_is_found(site: Path) -> None:
    (site / "torch" / "__init__.py").write_text("import evil\n")
    (site / "torch" / "lib" / "libshm.dylib").unlink()

    findings = audit_installed(site, INFO).findings

    assert {(finding.rule, finding.member) for finding in findings if finding.level == "error"} == {
        ("R4", "torch/__init__.py"),
        ("R3", "torch/lib/libshm.dylib"),
        ("F1", "torch/lib/libshm.dylib"),
        ("P5", "torch/bin/torch_shm_manager"),
    }


def test_the_command_asks_an_interpreter_where_its_torch_lies(site: Path, tmp_path: Path) -> None:
    venv = tmp_path / "venv"
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", venv], check=True)
    place = next(venv.glob("lib/python3.*/site-packages"))
    (place / "found.pth").write_text(f"{site}\n")
    document = tmp_path / "out.json"

    status = cli.main("audit_wheel", ["--python", str(venv / "bin" / "python"), "--json", str(document)])

    assert status == 0
    written = json.loads(document.read_text())
    assert written["facts"]["file"] == str(site / INFO)
    assert written["profile"] == "official"


def test_an_interpreter_without_torch_or_none_at_all_is_a_clear_error(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    venv = tmp_path / "venv"
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", venv], check=True)

    assert cli.main("audit_wheel", ["--python", str(venv / "bin" / "python")]) == 2
    assert "has 0 distributions called torch" in capsys.readouterr().err
    assert cli.main("audit_wheel", ["--python", str(tmp_path / "gone")]) == 2
    assert cli.main("audit_wheel", []) == 2
