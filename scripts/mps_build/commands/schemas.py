"""Write the JSON Schemas of our data files into schemas/, made from the models that read them.

Editors use them through the first line of each recipe. With --check nothing is changed; it
fails if a schema there is not the one that the model gives.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from pydantic import BaseModel

from mps_build.common.console import Console
from mps_build.common.errors import UsageError
from mps_build.common.recipe.catalogue import data_root
from mps_build.common.recipe.model import Recipe
from mps_build.common.records.benchmark import BenchmarkRecord
from mps_build.common.records.verification import Record
from mps_build.common.result import Result
from mps_build.host.recordings.recording import Recording

EXAMPLES = ("", "--check")
MODELS: Mapping[str, type[BaseModel]] = {
    "benchmark": BenchmarkRecord,
    "recipe": Recipe,
    "record": Record,
    "recording": Recording,
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Options:
    """What the command line says."""

    check: bool


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--check", action="store_true", help="change nothing; fail if one differs")


def run(options: Options, console: Console) -> Result:
    folder = data_root() / "schemas"
    changed: list[str] = []
    for name, model in MODELS.items():
        path = folder / f"{name}.schema.json"
        text = schema_text(name, model)
        if path.is_file() and path.read_text(encoding="utf-8") == text:
            continue
        changed.append(path.name)
        if not options.check:
            folder.mkdir(exist_ok=True)
            path.write_text(text, encoding="utf-8")
    if options.check and changed:
        raise UsageError(f"not as the models say: {', '.join(changed)}", hint="run `nox -s schemas`")
    console.print(f"{len(changed)} schemas written, {len(MODELS) - len(changed)} were as the models say")
    return Result(document={"changed": changed})


def schema_text(name: str, model: type[BaseModel]) -> str:
    """Return the schema of one model as the text of its file."""
    schema: dict[str, Any] = {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "$id": f"{name}.schema.json",
        **model.model_json_schema(mode="validation"),
    }
    return json.dumps(schema, indent=2, ensure_ascii=False) + "\n"
