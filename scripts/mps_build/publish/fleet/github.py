"""GitHub as a workflow's step meets it: the `gh` client, the step's outputs, the job's summary."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from mps_build.common.errors import SourceError, UsageError
from mps_build.common.json_text import load_json, parse_json
from mps_build.common.process import Command, capture


def gh(*arguments: str, parse: bool = True) -> Any:
    """Run GitHub's own client; it takes its token from GH_TOKEN.

    Raises:
        SourceError: it is not there, or GitHub refuses.
    """
    found = capture(Command(argv=("gh", *arguments)), timeout_seconds=60)
    if not found.ok:
        said = found.stderr.strip().splitlines()[-1:] or ["no answer"]
        raise SourceError(
            f"gh {' '.join(arguments[:2])}: {said[0]}", hint="install gh and set GH_TOKEN, as the workflow does"
        )
    try:
        return parse_json(found.stdout) if parse else None
    except ValueError as error:
        raise SourceError(f"gh {' '.join(arguments[:2])} did not answer with JSON: {error}") from error


def json_object(path: Path | None, what: str) -> dict[str, Any]:
    """Return the JSON object in a file; `what` names the file in the error.

    Raises:
        UsageError: it cannot be read, or holds something else.
    """
    document = load_json(path, hint=f"{what} takes what a command's --json wrote") if path else None
    if not isinstance(document, dict):
        raise UsageError(f"{what}: {path or 'no file given'} does not hold a JSON object")
    return document


def step_outputs(values: Mapping[str, str]) -> None:
    """Append to the step's outputs; a value of several lines could name further outputs.

    Raises:
        UsageError: a value has a line break.
    """
    if wrong := [name for name, value in values.items() if "\n" in value or "\r" in value]:
        raise UsageError(f"the output {wrong[0]} contains a line break")
    if path := os.environ.get("GITHUB_OUTPUT"):
        with Path(path).open("a", encoding="utf-8", errors="backslashreplace") as file:
            file.writelines(f"{name}={value}\n" for name, value in values.items())
