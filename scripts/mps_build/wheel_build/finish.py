"""The wheel's part of the pipeline: repaired, finished, audited, delivered with its receipt."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from mps_build import __version__
from mps_build.common.documents import head
from mps_build.common.environment import repair_environ
from mps_build.common.errors import AuditRejected
from mps_build.common.files import write_whole
from mps_build.common.receipts import Ledger, Receipt, StepResult, fingerprint
from mps_build.common.reporter import Reporter
from mps_build.common.scrubbing.scrubber import without_secrets
from mps_build.common.workspace import Workspace, remove_tree
from mps_build.inspection.audit import audit_wheel

from .artifacts import BuildEnvironment, SourceTree, Wheel
from .build_request import BuildRequest
from .compiler_cache.store import redacted
from .steps.deliver_wheel import deliver_wheel
from .steps.finish_wheel import FAST, SMALL, bill_of_materials, finish_wheel
from .steps.repair_wheel import repair_wheel


@dataclass(frozen=True, slots=True, kw_only=True)
class Delivered:
    """One accepted wheel in the wheelhouse, what the audit found, and the receipt that lies beside it."""

    wheel: Wheel
    python: str
    audit: Mapping[str, Any]
    receipt: Path


@dataclass(frozen=True, slots=True, kw_only=True)
class Finishing:
    """What one compiled wheel still needs, and from what it was made."""

    request: BuildRequest
    workspace: Workspace
    ledger: Ledger
    reporter: Reporter
    environment: BuildEnvironment
    tree: SourceTree

    @property
    def key(self) -> str:
        """The receipts' key of this wheel: profile and Python, such as `release-3.12`."""
        return f"{self.request.profile}-{self.environment.python_version}"

    def deliver(self, compiled: Receipt) -> Delivered:
        """Return the wheel in the wheelhouse.

        Raises:
            AuditRejected: the wheel is not what it should be; it stays in the work folder.
        """
        finished = self._finish(compiled)
        audited = self._audit(finished)
        if audited.facts["verdict"] != "accepted":
            raise _rejected(self._wheel(finished), audited.facts)
        return self._put_in_wheelhouse(finished, audited)

    def _finish(self, compiled: Receipt) -> Receipt:
        request, recipe, tree = self.request, self.request.recipe, self.tree
        raw = next((self.workspace.root / "compiled" / self.key).glob("*.whl"))
        output = self.workspace.root / "finished" / self.key
        bill = bill_of_materials(
            name=request.wheel.contents.distribution,
            version=request.version(dirty=bool(tree.dirty)) or raw.name.split("-")[1],
            commit=tree.commit,
            origin=recipe.source.repository or recipe.name,
            submodules=tree.submodules,
            patches={path.name: fingerprint(path)["sha256"] for path in request.source.patches},
            tools={"mps-build": __version__, **self.environment.tools, **self.environment.toolchain.facts},
            bundled=request.bundled,
        )

        def run() -> StepResult:
            wheel = raw
            if sys.platform == "darwin":
                wheel = repair_wheel(
                    raw,
                    python=Path(sys.executable),
                    output=self.workspace.root / "repaired" / self.key,
                    environ=repair_environ(os.environ),
                    exclude=(),
                    log=self.workspace.logs / f"repair_wheel-{self.key}.log",
                )
            kept = _set_aside(output) if request.profile == "develop" else None
            remove_tree(output)
            level = FAST if request.profile == "develop" else SMALL
            made = finish_wheel(wheel, output=output, epoch=tree.epoch, bill=bill, previous=kept, level=level)
            return StepResult(
                files=(made.path,), facts={"name": made.path.name, "size": made.size, "sha256": made.sha256}
            )

        inputs = {"previous": compiled.digest, "bill": bill, "epoch": tree.epoch, "platform": sys.platform}
        return self.ledger.run("finish_wheel", version=1, inputs=inputs, action=run, key=self.key)

    def _wheel(self, finished: Receipt) -> Wheel:
        path = self.workspace.root / "finished" / self.key / str(finished.facts["name"])
        return Wheel(path=path, size=finished.facts["size"], sha256=finished.facts["sha256"])

    def _audit(self, finished: Receipt) -> Receipt:
        wheel, expected = self._wheel(finished), self.request.expectation()

        def audit() -> StepResult:
            self.reporter.started("Audit")
            found = audit_wheel(wheel.path, profile="strict", expectation=expected)
            self.reporter.done()
            return StepResult(facts=found.document())

        inputs = {"wheel": wheel.sha256, "expectation": repr(expected), "tool": __version__}
        return self.ledger.run("audit_wheel", version=1, inputs=inputs, action=audit, key=self.key)

    def _put_in_wheelhouse(self, finished: Receipt, audited: Receipt) -> Delivered:
        wheel = self._wheel(finished)
        destination = self.request.wheel.folder / wheel.path.name
        beside = destination.with_name(f"{destination.name}.receipt.json")

        def put() -> StepResult:
            delivered = deliver_wheel(wheel, destination)
            document = self._document(delivered, audited.facts)
            write_whole(beside, json.dumps(without_secrets(document), indent=2, ensure_ascii=False) + "\n")
            return StepResult(files=(delivered.path, beside))

        inputs = {"previous": audited.digest, "wheelhouse": str(self.request.wheel.folder)}
        self.ledger.run("deliver_wheel", version=1, inputs=inputs, action=put, key=self.key)
        return Delivered(
            wheel=replace(wheel, path=destination),
            python=self.environment.python_version,
            audit=audited.facts,
            receipt=beside,
        )

    def _document(self, wheel: Wheel, audit: Mapping[str, Any]) -> dict[str, Any]:
        """Return the receipt that lies beside the wheel: all steps of this Python in one document."""
        request = self.request
        return {
            **head("wheel_receipt"),
            "tool": f"mps-build {__version__}",
            "wheel": {"file": wheel.path.name, "size": wheel.size, "sha256": wheel.sha256},
            "recipe": request.recipe.model_dump(mode="json"),
            "commit": request.source.commit,
            "python": self.environment.python_version,
            "profile": request.profile,
            "lifted": list(request.wheel.lifted),
            "settings": dict(request.compilers.settings),
            "dirty": list(self.tree.dirty),
            "patches": {path.name: fingerprint(path)["sha256"] for path in request.source.patches},
            "submodules": dict(self.tree.submodules),
            "environment": dict(sorted(redacted(self.environment.environ).items())),
            "reasons": dict(sorted(self.environment.reasons.items())),
            "tools": dict(self.environment.tools) | dict(self.environment.toolchain.facts),
            "host": dict(request.host.facts),
            "host_recording": dict(request.host.recording),
            "audit": {name: audit[name] for name in ("profile", "kind", "verdict", "findings")},
            "steps": [
                {"step": each.step, "digest": each.digest, "seconds": each.seconds, "facts": dict(each.facts)}
                for each in self.ledger.latest()
                if each.step not in ("audit_wheel", "deliver_wheel")
            ],
        }


def _set_aside(output: Path) -> Path | None:
    """Move the last finished wheel out of the way, and return where it is: the next one takes over what is equal."""
    last = sorted(output.glob("*.whl"))
    if len(last) != 1:
        return None
    aside = output.with_name(f"{output.name}-last")
    remove_tree(aside)
    output.rename(aside)
    return aside / last[0].name


def _rejected(wheel: Wheel, audit: Mapping[str, Any]) -> AuditRejected:
    errors = [finding for finding in audit["findings"] if finding["level"] == "error"]
    lines = [f"{finding['rule']} {finding['member'] or ''}: {finding['evidence']}" for finding in errors[:12]]
    return AuditRejected(
        f"{wheel.path.name} was rejected by the audit:\n  " + "\n  ".join(lines),
        hint=f"the rejected wheel is {wheel.path}; `nox -s audit_wheel -- '{wheel.path}'` says more",
        document={"audit": dict(audit)},
    )
