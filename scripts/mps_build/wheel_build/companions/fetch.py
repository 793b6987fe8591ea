"""A companion's source, got and looked at: its tag by git, a tarball, or the caller's own folder."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ...common.errors import SourceError
from ...common.git import answer, git
from ...common.receipts import Ledger, StepResult, fingerprint
from ...common.reporter import Reporter
from ...common.workspace import Workspace, cache_folder
from ..source_state import exclude_ours, source_state
from ..steps.prepare_source import fetch_source, resolve_ref, unpack_source
from .companion_plan import CompanionPlan
from .source import check_tree, has_mps_kernels, tree_digest


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
