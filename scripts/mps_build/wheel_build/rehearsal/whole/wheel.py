"""Linked libraries -> a wheel that is repaired, finished and audited by the pipeline's own steps."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from mps_build import __version__
from mps_build.common.environment import fetch_environ
from mps_build.common.errors import AuditRejected, BuildEnvironmentError
from mps_build.common.files import write_whole
from mps_build.common.json_text import head
from mps_build.common.process import Command, CommandFailed, run_logged
from mps_build.common.receipts import Receipt, StepResult, fingerprint
from mps_build.common.recipe.catalogue import patches_root
from mps_build.common.scrubbing.scrubber import without_secrets
from mps_build.common.wheels.pip_call import limited_pip, run_pip
from mps_build.common.workspace import remove_tree
from mps_build.inspection.audit import audit_wheel
from mps_build.inspection.audit.model import Expectation

from ...artifacts import Wheel
from ...ninja import run_build
from ...steps.compile_wheel import build_command, compile_wheel, files_of, make_commands, repack_wheel
from ...steps.finish_wheel import FAST, bill_of_materials, deliver_wheel, finish_wheel, repair_wheel
from ..session import Prepared, Rehearsal
from .objects import Wanted, tree_build

# Findings of the strict audit that this configuration explains: the report lists them, and they reject nothing.
EXPLAINED: Mapping[str, str] = {"G2": "Debian's tree comes without git, so no commit is named, and none is claimed"}
STATEMENT = (
    "a rehearsal: compiled and linked on Linux against declarations and stubs of Apple's frameworks; "
    "never loaded, run or verified on a Mac; not to be published or installed"
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Rehearsed:
    """The wheel in the work folder, its receipt beside it, and what the audit found."""

    wheel: Wheel
    receipt: Path
    audit: Mapping[str, Any]

    @property
    def explained(self) -> dict[str, str]:
        """Rule -> why its finding rejects nothing here."""
        return {each["rule"]: EXPLAINED[each["rule"]] for each in self.audit["findings"] if each["rule"] in EXPLAINED}

    @property
    def judged(self) -> str:
        """What the strict audit said, in a few words."""
        rejecting = sorted({each["rule"] for each in self.audit["findings"] if each["level"] == "error"})
        others = sorted({each["rule"] for each in self.audit["findings"]} - set(rejecting))
        warned = f"; warnings: {', '.join(others)}" if others else ""
        if not rejecting:
            return f"strict audit: {self.audit['verdict']}{warned}"
        return (
            f"strict audit: {self.audit['verdict']} by {', '.join(rejecting)}, which the configuration explains{warned}"
        )

    def document(self) -> dict[str, Any]:
        """Return the strict audit for `--json`: its own verdict, and why the rehearsal ends well in spite of it.

        `verdict` is what `audit_wheel` says of this file to anybody; `rejected_by` are the rules of its errors.
        """
        rejecting = sorted({each["rule"] for each in self.audit["findings"] if each["level"] == "error"})
        return {**self.audit, "rejected_by": rejecting, "explained": self.explained, "judged": self.judged}


def pack_whole(rehearsal: Rehearsal, ready: Prepared, *, state: str, libraries: tuple[Path, ...]) -> Receipt:
    """Return the receipt of the wheel that setup.py packs; after an edit only what changed is packed anew.

    Args:
        state: of the sources. libraries: what was linked.
    """
    tree, backend = ready.tree, ready.recipe.backend
    output, overrides = rehearsal.workspace.root / "compiled", rehearsal.workspace.root / "overrides.cmake"
    build, log = tree_build(ready), rehearsal.log("compile_wheel")
    given: dict[str, Any] = {
        "python": ready.python,
        "source": tree.root,
        "build": build,
        "environ": ready.environ,
        "overrides": overrides,
    }
    command = build_command(backend, output=output, **given)

    def run() -> StepResult:
        last = sorted(output.glob("*.whl"))
        if len(last) == 1 and last[0].name.split("-")[1] == ready.environ["PYTORCH_BUILD_VERSION"]:
            for each in make_commands(backend, jobs=rehearsal.jobs, **given):
                run_build(ready.wrap(each), log=log, reporter=rehearsal.console, title="Bring up to date")
            files = files_of(backend, source=tree.root, build=build, previous=last[0])
            if files is not None:
                wheel, changed = repack_wheel(last[0], files, output=output)
                rehearsal.console.line(f"repacked: {len(changed)} of {len(files)} files")
                return StepResult(files=(wheel,))
        return StepResult(
            files=(compile_wheel(ready.wrap(command), output=output, log=log, reporter=rehearsal.console),)
        )

    inputs = {
        "argv": command.argv,
        "state": state,
        "libraries": {path.name: fingerprint(path)["sha256"] for path in libraries},
        "version": ready.environ["PYTORCH_BUILD_VERSION"],
    }
    return rehearsal.ledger.run("compile_wheel", version=1, inputs=inputs, action=run)


def finish_whole(rehearsal: Rehearsal, ready: Prepared, packed: Receipt, wanted: Wanted) -> Rehearsed:
    """Return the wheel: repaired by delocate, marked, audited, and put beside its receipt in the work folder.

    Raises:
        AuditRejected: the audit found an error; the wheel stays where the message says.
    """
    workspace, recipe = rehearsal.workspace, rehearsal.recipe
    raw = next((workspace.root / "compiled").glob("*.whl"))
    bill = marked_bill(_bill(ready, recipe.wheel.distribution), wanted.libraries)

    def finish() -> StepResult:
        repaired = repair_wheel(
            raw,
            python=_delocate(rehearsal, ready),
            output=workspace.root / "repaired",
            environ=ready.environ,
            exclude=(),
            log=rehearsal.log("repair_wheel"),
            wrap=ready.wrap,
        )
        output = workspace.root / "finished"
        last = sorted(output.glob("*.whl"))
        aside = workspace.root / "finished-last"
        remove_tree(aside)
        if len(last) == 1:
            output.rename(aside)
        remove_tree(output)
        previous = aside / last[0].name if len(last) == 1 else None
        made = finish_wheel(repaired, output=output, epoch=ready.tree.epoch, bill=bill, previous=previous, level=FAST)
        remove_tree(aside)
        return StepResult(files=(made.path,), facts={"name": made.path.name, "size": made.size, "sha256": made.sha256})

    inputs = {"previous": packed.digest, "raw": fingerprint(raw)["sha256"], "bill": bill}
    finished = rehearsal.ledger.run("finish_wheel", version=1, inputs=inputs, action=finish)
    path = workspace.root / "finished" / str(finished.facts["name"])
    wheel = Wheel(path=path, size=finished.facts["size"], sha256=finished.facts["sha256"])
    audit = _audit(rehearsal, wheel)
    return _put(rehearsal, ready, wheel, audit, wanted)


def _bill(ready: Prepared, name: str) -> dict[str, Any]:
    patches = {patch: fingerprint(patches_root() / patch)["sha256"] for patch in ready.recipe.patches}
    libomp = ready.recipe.libomp
    return bill_of_materials(
        name=name,
        version=ready.environ["PYTORCH_BUILD_VERSION"],
        commit=ready.tree.commit,
        origin=ready.tree.origin,
        submodules=ready.tree.submodules,
        patches=patches,
        tools={"mps-build": __version__, **ready.tools},
        bundled={libomp.package: f"{libomp.version} {libomp.sha256}"} if libomp and ready.recipe.gate.openmp else {},
    )


def _delocate(rehearsal: Rehearsal, ready: Prepared) -> Path:
    """Return a Python with delocate, in the root: LLVM's tools are there."""
    folder = rehearsal.workspace.root / "delocate"
    python = folder / "bin" / "python"

    def install() -> StepResult:
        rehearsal.console.started("Install delocate")
        remove_tree(folder)
        base = f"/usr/bin/python{python_of(ready)}"
        log, environ = rehearsal.log("delocate"), fetch_environ(os.environ)
        made = Command(argv=(base, "-m", "venv", str(folder)), cwd=rehearsal.workspace.root, environ=environ)
        try:
            run_logged(ready.wrap(made), log=log)
            argv = (*limited_pip(python, beside=folder), "install", "-q", "--no-input", "delocate>=0.13")
            run_pip(replace(made, argv=argv), log=log, tell=rehearsal.console.line, wrap=ready.wrap)
        except CommandFailed as failure:
            text = "\n".join(failure.tail[-4:])
            raise BuildEnvironmentError(f"no delocate: {text}", hint=f"the whole output is in {log}") from failure
        rehearsal.console.done()
        return StepResult(trees=(folder,))

    rehearsal.ledger.run("delocate", version=1, inputs={}, action=install)
    return python


def python_of(ready: Prepared) -> str:
    """Return the Python's version, as 3.13, by its venv's name, `rehearsal-3.13`."""
    return ready.python.parents[1].name.rsplit("-", 1)[1]


def _audit(rehearsal: Rehearsal, wheel: Wheel) -> Mapping[str, Any]:
    """Return the strict audit's document; no commit is required, since Debian's tree has none.

    Raises:
        AuditRejected: an error that the configuration does not explain.
    """
    contents = rehearsal.recipe.wheel
    expected = Expectation(
        distribution=contents.distribution,
        deployment_target=rehearsal.recipe.deployment_target,
        metal_sections=dict(contents.metal_sections),
        openmp=contents.openmp,
        members=contents.members,
        allow_jit_shaders=True,
        without_metal4=True,
    )

    def audit() -> StepResult:
        rehearsal.console.started("Audit")
        found = audit_wheel(wheel.path, profile="strict", expectation=expected)
        rehearsal.console.done()
        return StepResult(facts=found.document())

    inputs = {"wheel": wheel.sha256, "expectation": repr(expected), "tool": __version__}
    facts = rehearsal.ledger.run("audit_wheel", version=1, inputs=inputs, action=audit).facts
    errors = [each for each in facts["findings"] if each["level"] == "error" and each["rule"] not in EXPLAINED]
    if errors:
        lines = [f"{each['rule']} {each['member'] or ''}: {each['evidence']}" for each in errors[:12]]
        raise AuditRejected(
            f"{wheel.path.name} is not what it should be:\n  " + "\n  ".join(lines),
            hint=f"the rejected wheel is {wheel.path}",
            document={"audit": dict(facts)},
        )
    return facts


def _put(rehearsal: Rehearsal, ready: Prepared, wheel: Wheel, audit: Mapping[str, Any], wanted: Wanted) -> Rehearsed:
    """Put the wheel and its receipt into the work folder's own `wheel/`, never into a wheelhouse."""
    folder = rehearsal.workspace.root / "wheel"
    delivered = deliver_wheel(wheel, folder / wheel.path.name)
    for other in folder.glob("*.whl"):
        if other != delivered.path:
            other.unlink()
    fakes = {library: list(names) for library, names in wanted.libraries.items()}
    document = {
        **head("rehearsal_receipt"),
        "tool": f"mps-build {__version__}",
        "rehearsal": STATEMENT,
        "wheel": {"file": delivered.path.name, "size": wheel.size, "sha256": wheel.sha256},
        "recipe": ready.recipe.model_dump(mode="json"),
        "source": ready.tree.origin,
        "fakes": fakes,
        "stand_ins": fakes,  # its name until 2026-11, kept for one release
        "environment": dict(sorted(ready.environ.items())),
        "tools": dict(ready.tools),
        "audit": {name: audit[name] for name in ("profile", "kind", "verdict", "findings")},
        "steps": [
            {"step": each.step, "digest": each.digest, "seconds": each.seconds, "facts": dict(each.facts)}
            for each in rehearsal.ledger.latest()
            if each.step != "audit_wheel"
        ],
    }
    receipt = folder / f"{delivered.path.name}.receipt.json"
    write_whole(receipt, json.dumps(without_secrets(document), indent=2, ensure_ascii=False) + "\n")
    return Rehearsed(wheel=delivered, receipt=receipt, audit=audit)


# What marks a wheel that was never near a Mac: its bill of materials and its receipt, beside its version.


def marked_bill(bill: Mapping[str, Any], fakes: Mapping[str, Sequence[str]]) -> dict[str, Any]:
    """Return a bill of materials that says it is of a rehearsal, with the libraries that are fakes.

    Args:
        fakes: library -> the names that trap when they are called.
    """
    metadata = dict(bill["metadata"])
    subject = dict(metadata["component"])
    subject["properties"] = [*subject.get("properties", ()), {"name": "mps-build:rehearsal", "value": STATEMENT}]
    metadata["component"] = subject
    components = [
        *bill["components"],
        *(
            {
                "type": "library",
                "name": library,
                "version": "fake",
                "bom-ref": f"fake:{library}",
                "description": f"{len(names)} names trap when they are called",
            }
            for library, names in sorted(fakes.items())
        ),
    ]
    depends = [{"ref": bill["dependencies"][0]["ref"], "dependsOn": [each["bom-ref"] for each in components]}]
    return {**bill, "metadata": metadata, "components": components, "dependencies": depends}
