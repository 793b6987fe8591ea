"""What a step leaves: what was done, from what, with what result. Lets any step be skipped, or resumed.

A step is skipped only if every input is equal *and* every output is there and matches.
"""

from __future__ import annotations

import hashlib
import json
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import datetime, timezone
from pathlib import Path
from typing import IO, Any

from .files import named, open_regular, read_text, write_whole
from .json_text import head, read_json

SCHEMA = 1


@dataclass(frozen=True, slots=True, kw_only=True)
class StepResult:
    """What a step's action hands back: the files and trees it made, and facts worth keeping."""

    files: tuple[Path, ...] = ()
    trees: tuple[Path, ...] = ()
    facts: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class Receipt:
    """One step done; `digest` stands for all of it in the next step's inputs."""

    step: str
    digest: str
    facts: Mapping[str, Any]
    seconds: float
    skipped: bool


class Ledger:
    """The receipts of one build, in one folder, one JSON file a step."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self.receipts: list[Receipt] = []

    def run(
        self,
        step: str,
        *,
        version: int,
        inputs: Mapping[str, Any],
        action: Callable[[], StepResult],
        key: str = "",
        unused: bool = False,
    ) -> Receipt:
        """Return the step's receipt, from disk if it still holds, else by running the action.

        Args:
            version: of the step's own code; raise it when the same inputs make something else.
            inputs: all that the result depends on, as JSON values.
            key: tells receipts of one step apart that stand side by side (a Python version).
            unused: nothing will look at this step's outputs, since what is made of them still holds.
        """
        path = self._path(step, key)
        whole = _whole(step, version, inputs)
        digest = digest_of(whole)
        kept = _read(path)
        if kept and kept.get("digest") == digest and (unused or _outputs_hold(kept)):
            receipt = Receipt(step=step, digest=digest, facts=kept["facts"], seconds=kept["seconds"], skipped=True)
            self.receipts.append(receipt)
            return receipt
        path.unlink(missing_ok=True)
        started, began = datetime.now(timezone.utc), time.monotonic()
        made = action()
        seconds = round(time.monotonic() - began, 3)
        for tree in made.trees:
            write_whole(_marker(tree, step), digest)
        outputs = [{"path": str(file), **fingerprint(file)} for file in made.files]
        outputs += [{"path": str(tree), "marker": _marker(tree, step).name, "digest": digest} for tree in made.trees]
        facts = json.loads(json.dumps(dict(made.facts)))
        document = {
            **whole,
            **head("step_receipt"),
            "digest": digest,
            "outputs": outputs,
            "facts": facts,
            "started": started.isoformat(timespec="seconds"),
            "seconds": seconds,
        }
        write_whole(path, json.dumps(document, indent=2, ensure_ascii=False) + "\n")
        receipt = Receipt(step=step, digest=digest, facts=facts, seconds=seconds, skipped=False)
        self.receipts.append(receipt)
        return receipt

    def holds(self, step: str, *, version: int, inputs: Mapping[str, Any], key: str = "") -> bool:
        """True if the step would be skipped."""
        kept = _read(self._path(step, key))
        return bool(kept and kept.get("digest") == digest_of(_whole(step, version, inputs)) and _outputs_hold(kept))

    def kept(self, step: str, *, key: str = "") -> Mapping[str, Any] | None:
        """Return the facts that the step left last time, whatever its inputs were; None if it never came to its end."""
        document = _read(self._path(step, key))
        return document["facts"] if document and isinstance(document.get("facts"), dict) else None

    def _path(self, step: str, key: str) -> Path:
        return self._folder / (f"{step}-{key}.json" if key else f"{step}.json")

    def latest(self) -> list[Receipt]:
        """Return the newest receipt of each step, in the order of the steps."""
        newest = {receipt.step: receipt for receipt in self.receipts}
        return list(newest.values())


def step_digest(step: str, *, version: int, inputs: Mapping[str, Any]) -> str:
    """Return the digest that a step's receipt will have, before it is run."""
    return digest_of(_whole(step, version, inputs))


def digest_of(value: Any) -> str:
    """Return the sha256 of a JSON value in one canonical form."""
    text = json.dumps(value, sort_keys=True, separators=(",", ":"), ensure_ascii=False)
    return hashlib.sha256(text.encode("utf-8", "surrogateescape")).hexdigest()


def fingerprint(file: Path) -> dict[str, Any]:
    """Return size (bytes) and sha256 of a file."""
    with named(file), open_regular(file) as stream:
        return fingerprint_of(stream)


def fingerprint_of(stream: IO[bytes]) -> dict[str, Any]:
    """Return the same of an open file, from its begin on."""
    hasher, size = hashlib.sha256(), 0
    stream.seek(0)
    while chunk := stream.read(1 << 20):
        hasher.update(chunk)
        size += len(chunk)
    return {"size": size, "sha256": hasher.hexdigest()}


def _read(path: Path) -> dict[str, Any] | None:
    try:
        document = read_json(path)
    except (OSError, ValueError):
        return None
    return document if isinstance(document, dict) else None


def _whole(step: str, version: int, inputs: Mapping[str, Any]) -> dict[str, Any]:
    return {"schema": SCHEMA, "step": step, "version": version, "inputs": inputs}


def _outputs_hold(kept: Mapping[str, Any]) -> bool:
    return all(map(_still_there, kept.get("outputs", [{}])))


def _still_there(output: Mapping[str, Any]) -> bool:
    path = Path(output.get("path", ""))
    try:
        if "marker" in output:
            return bool(read_text(path / output["marker"]) == output["digest"])
        return path.is_file() and fingerprint(path) == {"size": output["size"], "sha256": output["sha256"]}
    except (OSError, KeyError):
        return False


def _marker(tree: Path, step: str) -> Path:
    return tree / f".mps-build-{step}"
