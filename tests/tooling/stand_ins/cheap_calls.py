"""Every command with arguments that make it work, or refuse, within a second."""

from __future__ import annotations

import json
from pathlib import Path

from mps_build.commands.shared.catalogue import COMMANDS
from recorded_macs import recorded_mac
from small_wheels import write_wheel

ROOT = Path(__file__).parents[3]
WHEEL = "torch-2.6.0-cp312-cp312-macosx_13_0_arm64.whl"
CALLS: dict[str, tuple[str, ...]] = {
    "build_wheel": ("v2.6.0", "--dry-run", "--host", "mac.json"),
    "build_companions": ("v2.6.0", "--dry-run", "--host", "mac.json"),
    "rehearse": ("v2.6.0", "--torch", WHEEL),
    "check_mm": ("New.mm", "--source", "tree"),
    "shell": ("sample", "--offline", "--", "true"),
    "lock": ("--check", "v2.6.0"),
    "matrix": (),
    "refresh_patches": ("tree", "--recipe", "v2.6.0"),
    "build_report": ("build",),
    "audit_wheel": (WHEEL,),
    "verify_kernels": (WHEEL, "--beside", "mac.json"),
    "op_coverage": ("coverage.json",),
    "compare": ("record.json", "record.json"),
    "simulate": ("v2.15.0",),
    "verify_mps": ("--python", "/bin/false", "--device", "cpu"),
    "verify_training": ("--python", "/bin/false", "--device", "cpu"),
    "benchmark_mps": ("--python", "/bin/false", "--device", "cpu"),
    "bisect_mps": ("x", "--good", "2.3.1", "--bad", "2.6.0", "--index", "tree"),
    "repro": ("record.json", "a", "--output", "a.py", "--issue", "a.md"),
    "doctor": ("v2.6.0", "--host", "mac.json"),
    "triage": ("build.log",),
    "adopt": ("mac.json", "--name", "x", "--into", "adopted"),
    "support": ("--output", "x.tar.gz"),
    "clean": (),
    "publish_index": ("wheels", "--output", "site", "--dry-run"),
    "verify_provenance": (WHEEL, "--without-attestation"),
    "ci": ("inputs", "--ref", "main", "--runner", '["self-hosted"]'),
    "regenerate": ("--check",),
    "completion": ("bash",),
}
assert CALLS.keys() == COMMANDS.keys()


def lay_out(folder: Path) -> None:
    """Write the files that the calls name."""
    recorded = ROOT / "tests" / "recorded"
    recorded_mac(folder, "m5-24gb-26.3.1-rsr")
    for name in ("tree", "build", "wheels"):
        (folder / name).mkdir()
    (folder / "New.mm").write_text("int x;\n")
    (folder / "build.log").write_text("error: something failed\n")
    (folder / "build" / ".ninja_log").write_text("# ninja log v5\n0\t900\t0\ta.o\tabc\n")
    for place in (folder, folder / "wheels"):
        write_wheel(place, {"torch/version.py": b"git_version = '0'\n"}, name=WHEEL)
    coverage = (recorded / "op_coverage" / "v1.13.1-source.json").read_text(encoding="utf-8")
    (folder / "coverage.json").write_text(coverage, encoding="utf-8")
    record = json.loads((recorded / "records" / "cuda-h200-torch-2.11.0.json").read_text(encoding="utf-8"))
    case = {"id": "a", "layer": "x", "outcome": "failed", "issue": ["1"], "reason": "r", "file": "test_smoke_notes.py"}
    (folder / "record.json").write_text(json.dumps({**record, "verdict": "regressed", "cases": [case]}))
