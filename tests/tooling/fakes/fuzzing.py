"""Mutations of real inputs, and who reads them: whatever comes of it is an answer or an error of ours, in its budget.

Hypothesis chooses the mutations, so that a failing input shrinks to a few of them and comes again from the same seed.
"""

from __future__ import annotations

import io
import json
import re
import time
import zipfile
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import fuzzed_kernels
from fuzzed_json import KINDS as JSON_KINDS
from fuzzed_json import command_seeds, restructured, run_commands
from hypothesis import HealthCheck, Phase, given, seed, settings
from hypothesis import strategies as st
from mps_build.common import strict_yaml
from mps_build.common.errors import MpsBuildError
from mps_build.common.recipe.catalogue import find_recipe, load_recipe, patches_root, recipe_file, recipes_root
from mps_build.common.recipe.defaults import DEFAULTS
from mps_build.common.recipe.forms import as_yaml
from mps_build.common.records.benchmark import load_benchmark
from mps_build.common.records.device_record import load_record
from mps_build.host.probes.recording import load_recording
from mps_build.host.triage import explain, render
from mps_build.inspection.audit import audit_wheel
from mps_build.inspection.audit.render import fact_rows, finding_lines, verdict_line
from mps_build.publish.provenance.attestation import read_attestation
from mps_build.publish.provenance.claims import read_receipt, recipe_checks, wheel_checks
from mps_build.verify.reports.markdown import render as render_markdown
from small_wheels import record_of, torch_files

ROOT = Path(__file__).parents[3]
SEED = 20261122
# What one input may take, in seconds of CPU time; hostile ones of megabytes have tests of their own.
MOST_SECONDS = 10.0
NAME = "torch-2.15.0-cp312-cp312-macosx_14_0_arm64.whl"
INFO = "torch-2.15.0.dist-info"
_BILL = f"{INFO}/sboms/mps-build.cdx.json"

_NUMBERS = (b"\0", b"\xff" * 4, b"\xff" * 8, b"\x7f\xff\xff\xff", b"\x80\0\0\0", b"9" * 5000, b"1e999", b"-1", b"NaN")
_MARKS = (b"PK\1\2", b"PK\3\4", b"PK\5\6", b"PK\6\6", b"MTLB", b"\xcf\xfa\xed\xfe", b"\xfa\xde\x0c\xc0")
_VALUES = (
    b"null",
    b"true",
    b"[]",
    b"{}",
    b'""',
    b"[" * 300,
    b'{"a":' * 200,
    b"\\ud800",
    b"&a [*a]",
    b"!!python/object:x ",
)
_TEXTS = (b"\n", b"\r", b"\x1b[2J", "\u202e".encode(), b"../", b"/", b"error: ", b"::error::")
_TOKENS = (*_NUMBERS, *_MARKS, *_VALUES, *_TEXTS)

Operation = tuple[str, float, float, bytes]
_BYTES = ("replace", "insert", "delete", "repeat", "flip", "cut", "number")
_OPERATIONS = st.lists(
    st.tuples(
        # Half of all changes keep JSON what it is: a byte more or less is seldom JSON still.
        st.sampled_from((*_BYTES, *JSON_KINDS, "retype", "retype")),
        st.floats(0, 1),
        st.floats(0, 1),
        st.one_of(st.sampled_from(_TOKENS), st.binary(max_size=8)),
    ),
    min_size=1,
    max_size=6,
)


def mutated(data: bytes, operations: Sequence[Operation]) -> bytes:
    """Return the data changed at places that are fractions of its length."""
    for kind, where, how_much, token in operations:
        at = int(where * len(data))
        length = int(how_much**4 * min(len(data), 4096)) + 1
        if kind == "replace":
            data = data[:at] + token + data[at + len(token) :]
        elif kind == "insert":
            data = data[:at] + token + data[at:]
        elif kind == "delete":
            data = data[:at] + data[at + length :]
        elif kind == "repeat":
            data = data[:at] + data[at : at + length] * 8 + data[at + length :]
        elif kind == "flip" and data:
            at = min(at, len(data) - 1)
            data = data[:at] + bytes([data[at] ^ (1 << int(how_much * 7))]) + data[at + 1 :]
        elif kind == "number" and (numbers := list(re.finditer(rb"\d+", data))):
            number = numbers[min(int(where * len(numbers)), len(numbers) - 1)]
            new = _NUMBERS[min(int(how_much * len(_NUMBERS)), len(_NUMBERS) - 1)]
            data = data[: number.start()] + new + data[number.end() :]
        elif kind in JSON_KINDS:
            data = restructured(data, kind, where, how_much)
        elif kind == "cut":
            data = data[:at]
    return data


@dataclass(frozen=True, slots=True, kw_only=True)
class Target:
    """One reader: the inputs that are mutated, by name, and what is done with each."""

    seeds: Mapping[str, bytes]
    read: Callable[[str, bytes, Path], None]


@dataclass(slots=True, kw_only=True)
class Figures:
    """What came of many inputs: how many there were, what nobody caught, and the longest of one, in CPU seconds."""

    inputs: int = 0
    errors: list[str] = field(default_factory=list)
    slowest: float = 0.0


def run(target: Target, folder: Path, *, inputs: int, start: int = SEED) -> Figures:
    """Return what came of so many mutated inputs, drawn from a seed; the first uncaught error raises, shrunk."""
    figures = Figures()

    @seed(start)
    @settings(
        max_examples=inputs,
        deadline=None,
        database=None,
        phases=(Phase.generate, Phase.shrink),
        suppress_health_check=list(HealthCheck),
    )
    @given(st.sampled_from(sorted(target.seeds)), _OPERATIONS)
    def each(name: str, operations: list[Operation]) -> None:
        data = mutated(target.seeds[name], operations)
        began = time.process_time()
        try:
            target.read(name, data, folder)
        except MpsBuildError as error:
            str(error).encode("utf-8", "backslashreplace")
        except Exception as error:
            figures.errors.append(f"{name}: {error!r}")
            raise
        finally:
            seconds = time.process_time() - began
            figures.inputs += 1
            figures.slowest = max(figures.slowest, seconds)
        assert seconds < MOST_SECONDS, f"{name}: {seconds:.1f} s"

    each()
    return figures


def _read_wheel(name: str, data: bytes, folder: Path) -> None:
    path = folder / NAME
    if name == "archive":
        path.write_bytes(data)
    else:
        files = {**_WHEEL, name: data}
        files[f"{INFO}/RECORD"] = data if name == f"{INFO}/RECORD" else record_of(files, INFO)
        path.write_bytes(_zipped(files))
    audit = audit_wheel(path)
    json.dumps(audit.document())
    list(finding_lines(audit.findings, width=100))
    fact_rows(audit.facts_document)
    verdict_line(audit)


def _read_log(_name: str, data: bytes, _folder: Path) -> None:
    render(explain(data.decode("utf-8", "replace")))


def _read_recording(_name: str, data: bytes, folder: Path) -> None:
    load_recording(_written(folder / "recording.json", data))


def _read_record(name: str, data: bytes, folder: Path) -> None:
    path = _written(folder / "record.json", data)
    if name.startswith("benchmark"):
        load_benchmark(path)
    else:
        render_markdown(load_record(path))


def _read_recipe(name: str, data: bytes, folder: Path) -> None:
    file = _written(folder / name, data)
    if name == DEFAULTS:
        load_recipe(recipe_file("v2.6.0"), defaults=file)
    else:
        load_recipe(file)


def _read_receipt(name: str, data: bytes, folder: Path) -> None:
    if name == "attestation":
        read_attestation(_written(folder / "x.sigstore.json", data))
        return
    receipt = read_receipt(folder / NAME, _written(folder / "receipt.json", data))
    wheel = _written(
        folder / NAME, _zipped({"torch/version.py": b"git_version = '0'\n", f"{INFO}/sboms/mps-build.cdx.json": data})
    )
    wheel_checks(wheel, receipt)
    recipe_checks(receipt, find_recipe("v2.6.0"), patches_root=patches_root(), commit=None)


def _written(path: Path, data: bytes) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(data)
    return path


def _zipped(files: Mapping[str, bytes]) -> bytes:
    stream = io.BytesIO()
    with zipfile.ZipFile(stream, "w") as archive:
        for name, data in files.items():
            archive.writestr(name, data)
    return stream.getvalue()


def _small_wheel() -> dict[str, bytes]:
    files = {name: data for name, data in torch_files().items() if "_mps_dispatch.h" not in name}
    kept = {name: data for name, data in files.items() if not name.startswith("torch/lib/lib") or "torch_cpu" in name}
    kept[f"{INFO}/METADATA"] = b"Metadata-Version: 2.4\nName: torch\nVersion: 2.15.0\nRequires-Dist: numpy\n\nA text.\n"
    kept[f"{INFO}/WHEEL"] = b"Wheel-Version: 1.0\nTag: cp312-cp312-macosx_14_0_arm64\n"
    return kept


def _logs() -> dict[str, bytes]:
    rows: list[Any] = strict_yaml.unchecked((ROOT / "tests/recorded/triage_variants.yaml").read_text(encoding="utf-8"))
    texts = [text for text in _texts_in(rows) if len(text) > 80]
    return {f"log_{index}": text.encode() for index, text in enumerate(texts[:20])}


def _texts_in(value: Any) -> list[str]:
    if isinstance(value, dict):
        return [text for each in value.values() for text in _texts_in(each)]
    if isinstance(value, list):
        return [text for each in value for text in _texts_in(each)]
    return [value] if isinstance(value, str) else []


def _receipt() -> bytes:
    recipe = find_recipe("v2.6.0")
    whole: dict[str, Any] = {
        "wheel": {"file": NAME, "sha256": "0" * 64, "size": 1},
        "recipe": recipe.model_dump(mode="json"),
        "commit": recipe.commit,
        "profile": "release",
        "lifted": [],
        "settings": {},
        "dirty": [],
        "patches": dict.fromkeys(recipe.patches, "0" * 64),
        "submodules": {"third_party/fmt": "a" * 40},
        "metadata": {
            "component": {"properties": [{"name": "mps-build:commit", "value": "0"}], "pedigree": {"notes": ""}}
        },
        "components": [{"bom-ref": "submodule:x", "name": "x", "version": "1"}],
    }
    return json.dumps(whole).encode()


_ATTESTATION = json.dumps(
    {
        "verificationMaterial": {"certificate": {"rawBytes": "MAA="}},
        "dsseEnvelope": {
            "payload": "eyJzdWJqZWN0IjpbXSwicHJlZGljYXRlVHlwZSI6IngifQ==",
            "payloadType": "application/vnd.in-toto+json",
            "signatures": [{"sig": "AA=="}],
        },
    }
).encode()
_CASE = {"id": "a", "layer": "x", "outcome": "failed", "issue": ["1"], "reason": "r", "largest": 0.1, "file": "t.py"}
_RECORD: dict[str, Any] = {
    "schema": "mps-build/record/1",
    "tool": "mps-build 0",
    "statement": "MPS on Apple M1.",
    "verdict": "regressed",
    "exit_code": 10,
    "partial": False,
    "device": "mps",
    "target": {},
    "torch": {"version": "2.13.0", "wheel": {"file": "a", "sha256": "0"}},
    "started": "2026-11-21T19:00:00+00:00",
    "seconds": 1.0,
    "host": {"model": "Mac14,2"},
    "gpu": {"name": "M1"},
    "notes": ["n"],
    "cases": [_CASE],
}
_RECORDING = json.dumps(
    {
        "schema": 1,
        "recorded_on": "2026-11-21",
        "tool": "mps-build 0",
        "probes": [{"argv": ["uname", "-a"], "stdout": "Darwin", "stderr": "", "exit": 0}],
    }
).encode()
_WHEEL = _small_wheel()
TARGETS: Mapping[str, Callable[[], Target]] = {
    "audit": lambda: Target(
        seeds={
            "archive": _zipped({**_WHEEL, f"{INFO}/RECORD": record_of(_WHEEL, INFO)}),
            **_WHEEL,
            f"{INFO}/RECORD": record_of(_WHEEL, INFO),
        },
        read=_read_wheel,
    ),
    "triage": lambda: Target(seeds=_logs(), read=_read_log),
    "recordings": lambda: Target(seeds={"recording": _RECORDING}, read=_read_recording),
    "records": lambda: Target(
        seeds={
            "record": json.dumps(_RECORD).encode(),
            "benchmark": json.dumps({**_RECORD, "schema": "mps-build/benchmark/1"}).encode(),
        },
        read=_read_record,
    ),
    "recipes": lambda: Target(
        seeds={
            **{path.name: path.read_bytes() for path in sorted(recipes_root().glob("*.yaml"))},
            "whole.yaml": as_yaml(find_recipe("v2.6.0")).encode(),
        },
        read=_read_recipe,
    ),
    "commands": lambda: Target(seeds=command_seeds(), read=run_commands),
    "receipts": lambda: Target(seeds={"receipt": _receipt(), "attestation": _ATTESTATION}, read=_read_receipt),
    "bitcode": lambda: Target(seeds=fuzzed_kernels.modules(), read=fuzzed_kernels.read_bitcode),
    "messages": lambda: Target(seeds=fuzzed_kernels.messages(), read=fuzzed_kernels.read_message),
}
