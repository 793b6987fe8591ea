"""What every JSON document says first, and the form of each command's own: from here schemas/ is made.

A later version may add keys; it takes none away under the same schema.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from .. import __version__

# By command: what its document holds beside the head. `?` may be missing, `|null` may be null.
_COMMANDS: Mapping[str, str] = {
    "adopt": "recording:string expectation:string",
    "audit_wheel": "profile:string quick:boolean kind:string verdict:string findings:array facts:object",
    "benchmark_mps": "",
    "bisect_mps": "question:object good:string bad:string stages:array state:string",
    "build_companions": "recipe:string torch:object|string ?wheels:object ?constraints:string ?pins:array "
    "?tried:object ?steps:array ?dry_run:boolean ?companions:array ?jobs:integer ?toolchain:object",
    "build_report": "build:string steps:array notes:array wall_seconds:number slowest:array cache:object|null",
    "build_wheel": "?recipe:string ?commit:string|null ?profile:string ?wheels:array "
    "?steps:array|integer|null ?dry_run:boolean",
    "check_mm": "files:array base:string|null diagnostics:array unknown:array",
    "ci": "",
    "clean": "found:array chosen:array freed_bytes:integer",
    "compare": "?compared:string ?left:string ?right:string ?kernels:object ?parts:array ?newly_failing:array "
    "?newly_passing:array ?rows:array ?new_failures:array",
    "completion": "shell:string commands:array",
    "doctor": "probes:array host:object recorded_on:string|null ?blockers:array ?warnings:array ?findings:array "
    "?recipe:string ?way:array ?recipes:array ?unlocked_by:object",
    "lock": "?made:array ?removed:array ?faults:object",
    "matrix": "?include:array ?recipe:object",
    "op_coverage": "facts:object counts:object operators:array ?against:object ?changes:array ?kernel_changes:array",
    "plan_fleet": "plan:object best:object one_python_tested_minutes:number costs:object "
    "within_hours:number macs_needed:integer|null needed:object|null",
    "publish_index": "site:string dry_run:boolean sets:array wheels:array yanked:object deleted:array notes:array",
    "refresh_patches": "source:string recipe:string|null patches:array objective_c:array|string",
    "regenerate": "changed:array recipes:array",
    "rehearse": "recipe:string mode:string tree:string not_proved:array|string cpu_seconds:number tried:array "
    "steps:array ?wheel:string|null ?audit:object ?parity:object",
    "repro": "case:string script:string issue:string",
    "shell": "argv:array cwd:string environment:object",
    "simulate": "",
    "support": "output:string entries:array left_out:object removed:object",
    "triage": "cause:string|null notes:array first_error:object|null category:string|null detail:object|null "
    "tool_output:object|array|null",
    "verify_kernels": "target:string torch:string|null verdict:string seed:integer coverage:object libraries:object "
    "kernels:array ?plant:string ?reason:string",
    "verify_mps": "",
    "verify_provenance": "wheel:string attestation_checked:boolean checks:array",
    "verify_training": "",
}
# Files that commands leave, or read again, in a form of their own.
_FILES: Mapping[str, str] = {
    "wheel_receipt": "wheel:object recipe:object commit:string|null python:string profile:string "
    "steps:array audit:object",
    "companion_receipt": "wheel:object companion:string version:string of_recipe:string torch:object source:object",
    "rehearsal_receipt": "wheel:object recipe:object rehearsal:string steps:array audit:object",
    "step_receipt": "step:string version:integer inputs:object digest:string outputs:array facts:object seconds:number",
    "index_state": "published:object yanked:object reasons:object",
}
_ENDED = ("interrupted", "cut_off")


def head(name: str, version: int = 1) -> dict[str, Any]:
    """Return what a document says first: its form, and who wrote it.

    >>> head("clean")["schema"]
    'mps-build/clean/1'
    """
    return {"schema": f"mps-build/{name}/{version}", "tool_version": __version__}


def document_schemas() -> dict[str, dict[str, Any]]:
    """Return the JSON Schema of each document that no model of its own describes, by its name."""
    files = {name: _schema(name, keys) for name, keys in _FILES.items()}
    return {**{name: _of_command(name, keys) for name, keys in _COMMANDS.items()}, **files}


def _of_command(name: str, keys: str) -> dict[str, Any]:
    """A command's document ends with how it ended; one that failed may lack all else."""
    schema = _schema(name, keys)
    inner = schema["required"][2:]
    schema["required"] = ["schema", "tool_version", "exit_code", "cause", "hint"]
    schema["properties"] |= {
        "exit_code": {"type": "integer", "minimum": 0, "maximum": 255},
        "cause": {"type": ["string", "null"]},
        "hint": {"type": ["string", "null"]},
        "error": {"type": "string"},
    }
    if inner:
        ended = {"properties": {"cause": {"enum": [*_ENDED]}}}
        schema["anyOf"] = [{"required": inner}, {"required": ["error"]}, ended]
    return schema


def _schema(name: str, keys: str) -> dict[str, Any]:
    properties: dict[str, Any] = {
        "schema": {"const": head(name)["schema"]},
        "tool_version": {"type": "string", "minLength": 1},
    }
    required = [*properties]
    for word in keys.split():
        key, _, types = word.partition(":")
        if not key.startswith("?"):
            required.append(key)
        properties[key.lstrip("?")] = {"type": types.split("|") if "|" in types else types}
    return {"title": name, "type": "object", "required": required, "properties": properties}
