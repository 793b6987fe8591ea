"""From a torch wheel to companions that fit it: the steps in order, each under a receipt."""

from __future__ import annotations

import os
import re
import sys
import zipfile
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from packaging.requirements import InvalidRequirement, Requirement

from mps_build import __version__
from mps_build.common.console import Console
from mps_build.common.environment import fetch_environ, repair_environ
from mps_build.common.errors import AuditRejected, CompileError, SourceError
from mps_build.common.files import open_regular
from mps_build.common.git import answer, git
from mps_build.common.process import Command, kept_awake
from mps_build.common.receipts import Ledger, Receipt, StepResult, digest_of, fingerprint
from mps_build.common.reporting import Reporter
from mps_build.common.workspace import Workspace, cache_folder, remove_tree
from mps_build.inspection.audit import Audit, Expectation, audit_wheel
from mps_build.inspection.audit.releases import TORCH_LIBRARIES

from ..artifacts import Wheel
from ..compiler_environ import build_environ
from ..failure import explained
from ..source_state import exclude_ours, source_state
from ..steps.compile_wheel import compile_wheel
from ..steps.finish_wheel import bill_of_materials, finish_wheel, repair_wheel
from ..steps.prepare_source import fetch_source, resolve_ref, unpack_source
from .environment import CompanionEnvironment
from .plan import CompanionPlan, check_tree, copy_tree, has_mps_kernels, tree_digest

_HEADER = re.compile(r"Requires-Dist:\s*(?P<text>.+?)\s*$", re.IGNORECASE)


@dataclass(frozen=True, slots=True, kw_only=True)
class Companion:
    """One finished and audited wheel, and what it was made from."""

    source: CompanionSource
    version: str
    wheel: Wheel
    audit: Mapping[str, Any]
    environ: Mapping[str, str]
    reasons: Mapping[str, str]


class CompanionBuild:
    """One build: what is requested, where it works, where it reports."""

    def __init__(self, plan: CompanionPlan, *, workspace: Workspace, console: Console) -> None:
        self.plan = plan
        self.workspace = workspace
        self.console = console
        self.ledger = Ledger(workspace.receipts)
        self.fetch_environ = fetch_environ(os.environ)
        self.torch = fingerprint(plan.torch.path)

    def build(self) -> tuple[tuple[Companion, ...], CompanionEnvironment]:
        """Run every step up to the audit that its receipt does not spare."""
        plan = self.plan
        sources = Sources(
            plan=plan,
            workspace=self.workspace,
            ledger=self.ledger,
            reporter=self.console,
            environ=self.fetch_environ,
        )
        with kept_awake():
            with self.console.step("Source"):
                trees = [sources.obtain(name) for name in plan.sources]
            self.console.done()
            environment = CompanionEnvironment(
                plan=plan,
                workspace=self.workspace,
                ledger=self.ledger,
                reporter=self.console,
                environ=self.fetch_environ,
                torch_sha256=self.torch["sha256"],
            )
            with self.console.step("Environment"):
                prepared = environment.prepare()
            return tuple(self._build_one(tree, environment, prepared) for tree in trees), environment

    def _build_one(self, tree: CompanionSource, environment: CompanionEnvironment, prepared: Receipt) -> Companion:
        version = self.plan.version(tree.name, commit=tree.commit, dirty=bool(tree.dirty))
        environ, reasons = self._environ(tree, version, environment.venv)
        with self.console.step(f"Compile {tree.name}"):
            compiled = self._compile(tree, version, environ, environment, prepared)
        with self.console.step(f"Audit {tree.name}"):
            finished = self._finish(tree, version, compiled, prepared)
            wheel = Wheel(
                path=self._folder("finished", tree) / str(finished.facts["name"]),
                size=finished.facts["size"],
                sha256=finished.facts["sha256"],
            )
            audit = self._audit(tree, wheel)
        return Companion(source=tree, version=version, wheel=wheel, audit=audit, environ=environ, reasons=reasons)

    def _environ(self, tree: CompanionSource, version: str, venv: Path) -> tuple[dict[str, str], dict[str, str]]:
        plan = self.plan
        variables = plan.variables(tree.name)
        copied = self._copy(tree)
        extra = {
            "BUILD_VERSION": version,
            "PYTORCH_VERSION": plan.torch.version,
            # setup.py asks git for a commit; a copy that is not a repository would get that of a folder above it.
            "GIT_CEILING_DIRECTORIES": str(copied.parent),
        }
        environ, reasons = build_environ(
            plan.recipe.model_copy(update={"environment": variables}),
            inherited=os.environ,
            venv=venv,
            toolchain=plan.toolchain,
            jobs=plan.jobs,
            epoch=tree.epoch,
            settings=plan.settings,
            extra=extra,
        )
        return environ, reasons

    def _compile(
        self,
        tree: CompanionSource,
        version: str,
        environ: Mapping[str, str],
        environment: CompanionEnvironment,
        prepared: Receipt,
    ) -> Receipt:
        plan, copied, output = self.plan, self._copy(tree), self._folder("compiled", tree)
        argv = (str(environment.python), "-m", "build", "--wheel", "--no-isolation", "--skip-dependency-check")
        command = Command(argv=(*argv, "--outdir", str(output), str(copied)), cwd=copied, environ=environ)
        variables = {variable.name: environ[variable.name] for variable in plan.variables(tree.name)}
        inputs = {
            "previous": prepared.digest,
            "source": tree.digest,
            "version": version,
            "variables": {**variables, **plan.toolchain.variables, **plan.settings},
            "toolchain": dict(plan.toolchain.facts),
        }

        def run() -> StepResult:
            self._fresh_copy(tree, digest_of(inputs))
            log = self.workspace.logs / f"compile-{tree.name}-{plan.torch.python}.log"
            try:
                wheel = compile_wheel(plan.wrap(command), output=output, log=log, reporter=self.console)
            except CompileError as error:
                raise explained(error, log, release=plan.recipe.release, hint=self._hint(tree.name, log)) from error
            return StepResult(files=(wheel,))

        return self.ledger.run("compile", version=1, inputs=inputs, action=run, key=self._key(tree))

    def _fresh_copy(self, tree: CompanionSource, digest: str) -> None:
        """Copy the tree, unless the same build was begun in the copy: then it goes on there."""
        copied = self._copy(tree)
        kept = copied / ".mps-build-inputs"
        if kept.is_file() and kept.read_text(encoding="utf-8") == digest:
            return
        copy_tree(tree.root, copied)
        kept.write_text(digest, encoding="utf-8")

    def _finish(self, tree: CompanionSource, version: str, compiled: Receipt, prepared: Receipt) -> Receipt:
        plan = self.plan
        bill = bill_of_materials(
            name=tree.name,
            version=version,
            commit=tree.commit,
            origin=plan.project(tree.name).repository,
            submodules={},
            patches={},
            tools={"mps-build": __version__, **prepared.facts["tools"], **plan.toolchain.facts},
            bundled={},
        )
        output = self._folder("finished", tree)

        def run() -> StepResult:
            wheel = next(self._folder("compiled", tree).glob("*.whl"))
            if plan.repaired:
                wheel = repair_wheel(
                    wheel,
                    python=Path(sys.executable),
                    output=self._folder("repaired", tree),
                    environ=repair_environ(os.environ),
                    exclude=TORCH_LIBRARIES,
                    ignore_missing=True,
                    log=self.workspace.logs / f"repair-{tree.name}-{plan.torch.python}.log",
                )
            remove_tree(output)
            member, text = read_metadata(wheel)
            pinned = {member: pin_torch(text, plan.torch.version).encode("utf-8")}
            made = finish_wheel(wheel, output=output, epoch=tree.epoch, bill=bill, replaced=pinned)
            return StepResult(
                files=(made.path,), facts={"name": made.path.name, "size": made.size, "sha256": made.sha256}
            )

        inputs = {"previous": compiled.digest, "bill": bill, "repaired": plan.repaired}
        return self.ledger.run("finish", version=1, inputs=inputs, action=run, key=self._key(tree))

    def _audit(self, tree: CompanionSource, wheel: Wheel) -> Mapping[str, Any]:
        """Return the verdict, as a document.

        Raises:
            AuditRejected: the wheel is not what it should be; it stays in the work folder.
        """
        plan = self.plan

        def run() -> StepResult:
            self.console.started("Audit")
            found = audit_wheel(wheel.path, profile="strict", expectation=self._expectation(tree, wheel))
            self.console.done()
            return StepResult(facts={**found.document(), "excused": sorted(self._excused(found))})

        inputs = {
            "wheel": wheel.sha256,
            "torch": plan.torch.version,
            "target": plan.recipe.deployment_target,
            "excused": sorted(plan.excused),
            "tool": __version__,
        }
        facts = self.ledger.run("audit", version=1, inputs=inputs, action=run, key=self._key(tree)).facts
        errors = [each for each in facts["findings"] if each["level"] == "error" and each["rule"] not in plan.excused]
        if errors:
            lines = [f"{each['rule']} {each['member'] or ''}: {each['evidence']}" for each in errors[:12]]
            raise AuditRejected(
                f"{wheel.path.name} was rejected by the audit:\n  " + "\n  ".join(lines),
                hint=f"the rejected wheel is {wheel.path}; `nox -s audit_wheel -- '{wheel.path}'` says more",
                document={"audit": dict(facts)},
            )
        return facts

    def _excused(self, found: Audit) -> set[str]:
        return {finding.rule for finding in found.findings if finding.rule in self.plan.excused}

    def _expectation(self, tree: CompanionSource, wheel: Wheel) -> Expectation:
        with zipfile.ZipFile(wheel.path) as archive:
            missing = self.plan.project(tree.name).missing_extensions(archive.namelist())
        return Expectation(
            distribution=tree.name,
            deployment_target=self.plan.recipe.deployment_target if self.plan.for_macos else None,
            metal_sections={},
            # The commit stands in the wheel only where setup.py found git's.
            commit=tree.commit if self.plan.sources[tree.name].kind == "git" else None,
            # A pattern that no member fits is named as the member that is missing.
            members=missing,
            external_libraries=TORCH_LIBRARIES,
            requires=(f"torch=={self.plan.torch.version}",),
        )

    def _hint(self, name: str, log: Path) -> str:
        again = f"nox -s build_companions -- {self.plan.recipe.name} --only {name}"
        return (
            f"the whole output is in {log}; `{again}` continues from there; --set NAME=VALUE changes a variable; "
            f"--source {name}=PATH builds your own corrected tree"
        )

    def _copy(self, tree: CompanionSource) -> Path:
        return self.workspace.build / self._key(tree) / tree.name

    def _folder(self, what: str, tree: CompanionSource) -> Path:
        return self.workspace.root / what / self._key(tree)

    def _key(self, tree: CompanionSource) -> str:
        return f"{tree.name}-{self.plan.torch.python}"


# A companion's source, got and looked at: its tag by git, a tarball, or the caller's own folder.


@dataclass(frozen=True, slots=True, kw_only=True)
class CompanionSource:
    """A companion's tree as it stands; it is copied to be built, since setup.py writes into it."""

    name: str
    root: Path
    origin: str
    commit: str | None
    epoch: int
    digest: str
    dirty: tuple[str, ...]
    has_mps_kernels: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Sources:
    """Where sources are put, and who is informed."""

    plan: CompanionPlan
    workspace: Workspace
    ledger: Ledger
    reporter: Reporter
    environ: Mapping[str, str]

    def obtain(self, name: str) -> CompanionSource:
        """Return the tree of one companion, at the recipe's version.

        Raises:
            SourceError: it is not to be had, is another project or version, or was changed by hand.
        """
        choice = self.plan.sources[name]
        kinds = {"git": self._from_git, "tarball": self._from_tarball, "folder": self._from_folder}
        root, facts = kinds[choice.kind](name, choice.place)
        check_tree(root, self.plan.project(name), wanted=self.plan.recipe.companions[name])
        digest = tree_digest(root)
        if facts.get("digest", digest) != digest:
            raise SourceError(
                f"the tree {root} was changed by hand since it was made",
                hint=f"to build your changes: --source {name}=FOLDER with a copy; else remove {root}",
            )
        return CompanionSource(
            name=name,
            root=root,
            origin=choice.place,
            commit=facts.get("commit"),
            epoch=facts["epoch"],
            digest=digest,
            dirty=tuple(facts.get("dirty", ())),
            has_mps_kernels=has_mps_kernels(root, self.plan.project(name)),
        )

    def _from_git(self, name: str, repository: str) -> tuple[Path, Mapping[str, Any]]:
        tag, root = f"v{self.plan.recipe.companions[name]}", self.workspace.source / name

        def resolve() -> StepResult:
            own = f"or give a tree that you have: --source {name}=PATH"
            if self.plan.offline:
                raise SourceError(
                    f"tag {tag} of {repository} was never looked up, and --offline does not allow it now",
                    hint=f"run once without --offline, {own}",
                )
            try:
                # Kept: a tag that moves later changes nothing of what was resolved here.
                return StepResult(facts={"commit": resolve_ref(repository, f"refs/tags/{tag}", environ=self.environ)})
            except SourceError as error:
                raise SourceError(str(error), hint=f"check the network and the tag; {own}") from error

        where = {"repository": repository, "tag": tag}
        commit = self.ledger.run("resolve", version=1, inputs=where, action=resolve, key=name).facts["commit"]

        def fetch() -> StepResult:
            tree = fetch_source(
                repository=repository,
                commit=commit,
                tag=None,
                destination=root,
                cache=cache_folder(),
                environ=self.environ,
                log=self.workspace.logs / f"fetch-{name}.log",
                reporter=self.reporter,
                offline=self.plan.offline,
            )
            exclude_ours(tree.root)
            return StepResult(trees=(root,), facts={"epoch": tree.epoch, "digest": tree_digest(root)})

        receipt = self.ledger.run("fetch", version=1, inputs={**where, "commit": commit}, action=fetch, key=name)
        return root, {**receipt.facts, "commit": commit}

    def _from_tarball(self, name: str, place: str) -> tuple[Path, Mapping[str, Any]]:
        tarball, root = Path(place), self.workspace.source / name

        def unpack() -> StepResult:
            root.parent.mkdir(parents=True, exist_ok=True)
            epoch = unpack_source(tarball, destination=root, reporter=self.reporter)
            return StepResult(trees=(root,), facts={"epoch": epoch, "digest": tree_digest(root)})

        inputs = {"tarball": fingerprint(tarball)}
        return root, self.ledger.run("unpack", version=1, inputs=inputs, action=unpack, key=name).facts

    def _from_folder(self, name: str, place: str) -> tuple[Path, Mapping[str, Any]]:
        del name
        root = Path(place)
        if not (root / ".git").exists():
            return root, {"epoch": 0}
        commit = answer(git("rev-parse", "HEAD", cwd=root, environ=self.environ))
        dirty, _ = source_state(root, {"": commit}, environ=self.environ)
        epoch = int(answer(git("show", "-s", "--format=%ct", "HEAD", cwd=root, environ=self.environ)))
        return root, {"epoch": epoch, "commit": commit, "dirty": dirty}


# A wheel's METADATA, with torch pinned to the one version it was compiled for.


def pin_torch(metadata: str, version: str) -> str:
    """Return METADATA whose only demand for torch is that exact version, its local part included.

    `torch==2.6.0` alone would let pip put the official 2.6.0 under a C++ that was compiled for another commit;
    torchaudio 2.11 asks for no torch at all.

    >>> print(pin_torch("Name: a\\nRequires-Dist: numpy\\nRequires-Dist: torch (==2.6.0)\\n\\ntext", "2.6.0+mps.g1"))
    Name: a
    Requires-Dist: numpy
    Requires-Dist: torch==2.6.0+mps.g1
    <BLANKLINE>
    text
    """
    headers, separator, body = metadata.replace("\r\n", "\n").partition("\n\n")
    lines = [line for line in headers.rstrip("\n").split("\n") if not _is_torch(line)]
    lines.append(f"Requires-Dist: torch=={version}")
    return "\n".join(lines) + (separator or "\n") + body


def read_metadata(wheel: Path) -> tuple[str, str]:
    """Return (member, text) of a wheel's METADATA.

    Raises:
        CompileError: the build made a wheel without one.
    """
    with open_regular(wheel) as file, zipfile.ZipFile(file) as archive:
        names = [name for name in archive.namelist() if re.fullmatch(r"[^/]+\.dist-info/METADATA", name)]
        if len(names) != 1:
            raise CompileError(f"{wheel.name} holds {len(names)} files called .dist-info/METADATA instead of one")
        return names[0], archive.read(names[0]).decode("utf-8")


def _is_torch(line: str) -> bool:
    match = _HEADER.match(line)
    if match is None:
        return False
    try:
        requirement = Requirement(_modern(match["text"]))
    except InvalidRequirement:
        return False
    return requirement.name.lower() == "torch"


def _modern(text: str) -> str:
    """Return a requirement without the parentheses of old METADATA: `torch (==2.6.0)`."""
    return re.sub(r"\(([^)]*)\)", r"\1", text, count=1)
