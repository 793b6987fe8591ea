"""Wheels made to hurt are refused or rejected with what was too much, in ten seconds and 1.5 GB of address space."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from multiprocessing import forkserver, get_context
from multiprocessing.context import ForkServerContext
from pathlib import Path

import pytest
from hostile_wheels import ATTACKS, audit_within
from mps_build.inspection.audit import audit_wheel
from small_wheels import torch_files, write_wheel

MOST_SECONDS, MOST_ADDRESS_SPACE = 10, 1_500_000 << 10
MOST_OUTPUT_BYTES = 8 << 20


@pytest.fixture(scope="module")
def forks() -> Iterator[ForkServerContext]:
    """Make processes that are forks of one with the tool's imports behind it: a start anew costs more than an audit."""
    context = get_context("forkserver")
    context.set_forkserver_preload(["limited_audit"])
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("PYTHONPATH", os.pathsep.join(sys.path))
        forkserver.ensure_running()
    yield context
    forkserver._forkserver._stop()  # type: ignore[attr-defined]


# One to three seconds each, of forms that others have in small.
LONG = ("within_bounds", "many_metallibs", "many_members", "full_trie", "cmake_files", "bushy_trie", "many_loads")


# A second form of an attack that is tried beside it.
SECOND = (
    *("folded_metadata_in_bounds", "version_py_lines", "record_quotes", "long_version_of_strange_name", "deep_names"),
    *("undefined_names_in_bounds", "zip64_offset_64", "zip64_packed", "two_metallibs", "overlapping_blobs"),
    *("endless_labels", "compiler_flags"),
)


@pytest.mark.parametrize(
    "attack", [pytest.param(name, marks=pytest.mark.slow) if name in LONG + SECOND else name for name in ATTACKS]
)
def test_a_hostile_wheel_is_refused_within_its_budget(attack: str, forks: ForkServerContext, tmp_path: Path) -> None:
    make, expected = ATTACKS[attack]
    wheel = make(tmp_path)
    audit = forks.Process(target=audit_within, args=(wheel, tmp_path, MOST_ADDRESS_SPACE))
    audit.start()
    audit.join(6 * MOST_SECONDS)
    audit.kill()  # where it still runs
    audit.join()
    stdout, stderr = ((tmp_path / name).read_text(encoding="utf-8") for name in ("stdout", "stderr"))
    assert audit.exitcode in (2, 9), stdout[-2000:] + stderr[-2000:]
    assert "Traceback" not in stderr
    document = (tmp_path / "audit.json").read_text(encoding="utf-8")
    wheel.unlink()
    assert expected in document
    assert len(document) + len(stdout) < MOST_OUTPUT_BYTES
    assert float((tmp_path / "seconds").read_text(encoding="utf-8")) < MOST_SECONDS


NAMES = {
    "case": (("torch/A.py", "torch/a.py"), "Z1", "the same file as"),
    "normalisation": (("torch/caf\u00e9.py", "torch/cafe\u0301.py"), "Z1", "the same file as"),
    "case_and_normalisation": (("torch/CAF\u00c9.py", "torch/cafe\u0301.py"), "Z1", "the same file as"),
    "sharp_s": (("torch/stra\u00dfe.py", "torch/strasse.py"), "Z1", "the same file as"),
    "file_and_folder_but_for_case": (("torch/B", "torch/b/c.py"), "Z1", "is a file and a folder"),
    "turned_round": (("torch/\u202egnp.py",), "Z2", "U+202E"),
    "invisible": (("torch/a\u200b.py",), "Z2", "U+200B"),
    "c1_control": (("torch/a\u009b2J.py",), "Z2", "U+009B"),
    "line_separator": (("torch/a\u2028b.py",), "Z2", "U+2028"),
    "escape": (("torch/a\x1b[2J.py",), "Z2", "is not a plain path"),
    "long_part": (("torch/" + "a" * 256,), "Z2", "255 bytes"),
    "pth": (("evil.pth",), "Z4", "every start of Python"),
    "pth_in_capitals": (("EVIL.PTH",), "Z4", "every start of Python"),
    "pth_of_data": (("torch-2.15.0.data/purelib/evil.pth",), "Z4", "every start of Python"),
    "pth_of_prefix": (("torch-2.15.0.data/data/lib/python3.12/site-packages/evil.pth",), "Z4", "every start"),
    "start": (("evil.start",), "Z4", "every start of Python"),
    "sitecustomize": (("sitecustomize.py",), "Z4", "every start of Python"),
    "sitecustomize_package": (("sitecustomize/__init__.py",), "Z4", "every start of Python"),
}


@pytest.mark.parametrize("kind", NAMES)
def test_a_name_that_is_two_things_is_rejected(kind: str, tmp_path: Path) -> None:
    names, rule, evidence = NAMES[kind]
    wheel = write_wheel(tmp_path, {**torch_files(), **dict.fromkeys(names, b"x")})
    audit = audit_wheel(wheel)
    assert audit.verdict == "rejected"
    assert [finding for finding in audit.findings if finding.rule == rule and evidence in finding.evidence]


def test_a_pth_file_inside_a_package_is_data(tmp_path: Path) -> None:
    wheel = write_wheel(tmp_path, {**torch_files(), "torch/weights.pth": b"x", "torch/testing/\u00e9t\u00e9.txt": b"x"})
    assert audit_wheel(wheel).verdict == "accepted"


def test_findings_are_listed_up_to_a_number(tmp_path: Path) -> None:
    wheel = write_wheel(
        tmp_path, torch_files(), record=b"a,sha256=x,1\n" * 3 + b"".join(b"%d,,\n" % i for i in range(9000))
    )
    found = [finding for finding in audit_wheel(wheel).findings if finding.rule == "R3"]
    assert len(found) == 501
    assert found[-1].evidence == "and more; 500 are listed"
