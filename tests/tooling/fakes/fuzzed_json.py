"""Mutated JSON documents, and every command that reads a stranger's JSON run on them."""

from __future__ import annotations

import io
import json
import os
import shutil
from collections.abc import Callable, Mapping
from contextlib import redirect_stderr, redirect_stdout
from pathlib import Path
from typing import Any
from unittest.mock import patch

from macs import recorded_document
from mps_build.cli import main

KINDS = ("retype", "drop", "wrap", "rename", "double")
# One of each type, and of each type what has broken a reader: nested facts, numbers beyond all, steering characters.
VALUES: tuple[Any, ...] = (
    None,
    True,
    0,
    -1,
    1.5,
    10**9,
    2**63,
    10**25,
    1e308,
    float("nan"),
    "",
    "x",
    "9" * 5000,
    "\u00b2",
    "2026-02-30",
    "\x1b[2J\u202e|`<b>\n::error::x",
    [],
    [[]],
    ["x"],
    [1, {"x": ["y"]}],
    {},
    {"x": "y"},
    {"x": {"y": [0]}},
)


def restructured(data: bytes, kind: str, where: float, which: float) -> bytes:
    """Return the document with one of its parts changed; what is not JSON (any more) stays as it is.

    Args:
        where: the part, as a fraction of all of them in order.
        which: the new value, as a fraction of VALUES.
    """
    try:
        document = json.loads(data)
    except (ValueError, RecursionError):
        return data
    value = VALUES[min(int(which * len(VALUES)), len(VALUES) - 1)]
    places = _places(document) if isinstance(document, dict | list) else []
    if not places:
        return json.dumps(value).encode()
    change = _CHANGES[kind]
    holder, key = places[min(int(where * len(places)), len(places) - 1)]
    change(holder, key, value)
    return json.dumps(document).encode()


def _places(document: Any) -> list[tuple[Any, Any]]:
    """Return holder and key of every part, outer ones first: by depth, so that small fractions hit the frame."""
    found: list[tuple[Any, Any]] = []
    level = [document]
    while level:
        parts = [
            (holder, key) for holder in level for key in (holder if isinstance(holder, dict) else range(len(holder)))
        ]
        found += parts
        level = [holder[key] for holder, key in parts if isinstance(holder[key], dict | list)]
    return found


def _retype(holder: Any, key: Any, value: Any) -> None:
    holder[key] = value


def _drop(holder: Any, key: Any, _value: Any) -> None:
    del holder[key]


def _wrap(holder: Any, key: Any, _value: Any) -> None:
    holder[key] = [holder[key]]


def _rename(holder: Any, key: Any, value: Any) -> None:
    if isinstance(holder, dict):
        holder[value if isinstance(value, str) else "x"] = holder.pop(key)


def _double(holder: Any, key: Any, _value: Any) -> None:
    if isinstance(holder, list):
        holder.append(holder[key])


_CHANGES: dict[str, Callable[[Any, Any, Any], None]] = {
    "retype": _retype,
    "drop": _drop,
    "wrap": _wrap,
    "rename": _rename,
    "double": _double,
}


RECORDED = Path(__file__).parents[2] / "recorded"
_WHEEL = "torch-2.15.0-cp312-cp312-macosx_14_0_arm64.whl"
# `{}` is the document, `{into}` a folder to write to.
CALLS: Mapping[str, tuple[tuple[str, ...], ...]] = {
    "recording": (
        ("doctor", "v2.15.0", "--host", "{}"),
        ("doctor", "--all", "--host", "{}"),
        ("adopt", "{}", "--name", "x", "--into", "{into}"),
        ("build_wheel", "v2.6.0", "--dry-run", "--host", "{}"),
        ("triage", "{log}", "--host", "{}"),
    ),
    "record": (
        ("repro", "{}", "a", "--output", "{into}/a.py", "--issue", "{into}/a.md"),
        ("compare", "{}", "{}"),
        ("adopt", "{}", "--name", "x", "--into", "{into}"),
        ("support", "verify", "--output", "{into}/x.tar.gz"),
        ("op_coverage", "{coverage}", "--record", "{}"),
    ),
    "benchmark": (("compare", "{}", "{}"),),
    "kernels": (("repro", "{}", "exp_dense_float_float", "--output", "{into}/a.py", "--issue", "{into}/a.md"),),
    "coverage": (("op_coverage", "{}", "--html", "{into}/a.html"), ("op_coverage", "{}", "--against", "{coverage}")),
    "build": (("ci", "outputs", "--build", "{}"), ("ci", "issues", "--results", "{work}", "--dry-run")),
    "receipt": (
        ("publish_index", "{wheels}", "--output", "{into}/site", "--dry-run"),
        ("verify_provenance", "{wheels}/" + _WHEEL, "--without-attestation"),
    ),
    "step": (("build_report", "{work}/v2.6.0/build/release"), ("build_report", "v2.6.0"), ("clean",)),
    "state": (("publish_index", "{wheels}", "--output", "{site}", "--dry-run"),),
    "labels": (("ci", "inputs", "--testers", "{text}"), ("ci", "inputs", "--runner", "{text}")),
}


def command_seeds() -> dict[str, bytes]:
    """Return one document of each kind, by its kind."""
    return {name: json.dumps(document).encode() for name, document in _documents().items()}


def run_commands(name: str, data: bytes, folder: Path) -> None:
    """Run every command that reads such a file; exit 1 says that an error was not caught."""
    for call in CALLS[name]:
        run_command(name, call, data, folder)


def run_command(name: str, call: tuple[str, ...], data: bytes, folder: Path) -> tuple[int, str]:
    """Run one of the calls on a document; return its status, and what it wrote to standard error."""
    command, *arguments = call
    places = _written_out(name, data, folder)
    words = [places["document"] if word == "{}" else word.format(**places) for word in arguments]
    folders = {"MPS_BUILD_WORK": places["work"], "MPS_BUILD_CACHE": str(folder / "cache")}
    with patch.dict(os.environ, folders), redirect_stdout(io.StringIO()) as out, redirect_stderr(io.StringIO()) as said:
        status = main(command, words)
    if status == 1:
        raise AssertionError(f"{command} ended with 1: {said.getvalue()[-2000:]}")
    if steering := {character for character in "\x1b\x07\r\u202e" if character in out.getvalue() + said.getvalue()}:
        raise AssertionError(f"{command} printed {steering}")
    return status, said.getvalue()


def _written_out(name: str, data: bytes, folder: Path) -> dict[str, str]:
    """Write the document wherever a command looks for one of its kind, and return the places."""
    for each in ("into", "work", "wheels", "site"):
        shutil.rmtree(folder / each, ignore_errors=True)
        (folder / each).mkdir()
    document = folder / "strangers.json"
    build = folder / "work" / "v2.6.0"
    files = {
        "record": folder / "work" / "verify" / "a" / "record.json",
        "receipt": folder / "wheels" / f"{_WHEEL}.receipt.json",
        "step": build / "receipts" / "compile_wheel-3.12.json",
        "state": folder / "site" / "index-state.json",
        "build": folder / "work" / "macos" / "build.json",
    }
    log = build / "build" / "release" / ".ninja_log"
    log.parent.mkdir(parents=True)
    log.write_text("# ninja log v5\n0\t900\t0\ta.o\tabc\n")
    if not (folder / "coverage.json").exists():  # what no command writes is written once
        (folder / "build.log").write_text("error: x\n")
        shutil.copy(RECORDED / "op_coverage" / "v1.13.1-source.json", folder / "coverage.json")
    wheel = folder / "wheels" / _WHEEL
    wheel.write_bytes(b"PK\5\6" + bytes(18))
    for path in (document, *([files[name]] if name in files else [])):
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(data)
    named = {each: str(folder / each) for each in ("into", "work", "wheels", "site")}
    text = data.decode("utf-8", "replace").replace("\0", "")
    return {
        **named,
        "document": str(document),
        "log": str(folder / "build.log"),
        "coverage": str(folder / "coverage.json"),
        "text": text,
    }


def _documents() -> dict[str, Any]:
    coverage = _json("op_coverage/v2.6.0-wheel.json")
    short = {key: _shortened(value) for key, value in coverage.items()}
    record = _json("records/cuda-h200-torch-2.11.0.json")
    case = {"id": "a", "layer": "x", "outcome": "failed", "issue": ["1"], "reason": "r", "file": "test_smoke_notes.py"}
    return {
        "recording": recorded_document("m5-24gb-26.3.1-rsr"),
        "record": {**record, "verdict": "regressed", "cases": [case, *record["cases"][:2]]},
        "benchmark": _json("records/benchmark-cuda-h200-torch-2.11.0.json"),
        "coverage": short,
        "kernels": _KERNELS,
        "build": _BUILD,
        "receipt": _RECEIPT,
        "step": _STEP,
        "state": {"schema": 1, "yanked": {_WHEEL: "2026-01-01"}},
        "labels": [["self-hosted", "macOS", "macos-15"]],
    }


def _json(name: str) -> dict[str, Any]:
    document: dict[str, Any] = json.loads((RECORDED / name).read_text(encoding="utf-8"))
    return document


def _shortened(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _shortened(each) for key, each in list(value.items())[:6]}
    return [_shortened(each) for each in value[:6]] if isinstance(value, list) else value


_KERNEL = {
    "name": "exp_dense_float_float",
    "library": "metal_basic",
    "body": "0",
    "outcome": "wrong",
    "reason": "1 of 4 elements differ from torch (exp)",
    "inputs": {"x": "1.0"},
    "where": {"got": "2"},
    "max_ulp": 9.0,
    "bound_ulp": 4.0,
    "profile": [0.5, 1.0],
}
_KERNELS = {
    "schema": "mps-build/kernels/1",
    "target": _WHEEL,
    "torch": "2.15.0",
    "verdict": "findings",
    "seed": 0,
    "coverage": {"kernels": 1, "compiled": 1, "bound": 1, "run": 1},
    "libraries": {"metal_basic": {"kernels": 1, "compiled": 1, "bound": 1, "run": 1}},
    "kernels": [_KERNEL],
}
_BUILD = {
    "recipe": "v2.6.0",
    "commit": "a" * 40,
    "exit_code": 0,
    "cause": None,
    "hint": None,
    "wheels": [{"path": _WHEEL, "receipt": f"{_WHEEL}.receipt.json", "sha256": "0" * 64, "size": 1, "kind": "aot"}],
    "steps": [{"step": "compile_wheel", "seconds": 1.0, "skipped": False}],
}
_RECEIPT = {
    "schema": 1,
    "wheel": {"file": _WHEEL, "sha256": "0" * 64, "size": 22},
    "recipe": {"name": "v2.15.0"},
    "commit": "0" * 40,
    "profile": "release",
    "lifted": [],
    "settings": {},
    "environment": {"MAX_JOBS": "8"},
    "metadata": {"component": {"properties": [{"name": "mps-build:commit", "value": "0"}]}},
    "steps": [
        {"step": "compile_wheel", "seconds": 600.0, "facts": {"cache": {"hits": 1, "misses": 1, "hit_rate": 0.5}}},
        {"step": "configure", "seconds": 60.0},
    ],
}
_STEP = {
    "schema": 1,
    "step": "compile_wheel",
    "version": 1,
    "inputs": {"previous": "0"},
    "digest": "0",
    "outputs": [],
    "facts": {"cache": {"tool": "ccache", "hits": 1, "misses": 1, "hit_rate": 0.5}, "jobs": 8},
    "started": "2026-11-01T00:00:00+00:00",
    "seconds": 600.0,
}
