"""The source's part of the pipeline: fetched, unpacked or the caller's own; patched; in a state that is known."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path

from mps_build.common.errors import SourceError
from mps_build.common.receipts import Ledger, Receipt, StepResult, digest_of, fingerprint
from mps_build.common.recipe.catalogue import patches_root
from mps_build.common.reporter import Reporter
from mps_build.common.workspace import Workspace, cache_folder

from .artifacts import SourceTree
from .build_request import SourceRequest
from .source_state import exclude_ours, prove, restore, source_state, tree_commits
from .steps.apply_patches import apply_patches
from .steps.fetch_source import fetch_source
from .steps.unpack_source import unpack_source


def prepare_source(
    request: SourceRequest,
    *,
    workspace: Workspace,
    ledger: Ledger,
    environ: Mapping[str, str],
    reporter: Reporter,
    unchanged: bool,
    offline: bool = False,
) -> tuple[SourceTree, str]:
    """Return the patched tree and a digest that stands for all of it.

    Args:
        unchanged: refuse a tree that was changed by hand, as a release must.
        offline: fetch nothing.

    Raises:
        SourceError: it could not be had, or a release's tree was changed by hand.
        PatchError: a patch does not fit.
    """
    preparing = _Preparing(
        request=request,
        root=workspace.source,
        workspace=workspace,
        ledger=ledger,
        environ=environ,
        reporter=reporter,
        unchanged=unchanged,
        offline=offline,
    )
    if request.origin == "tree":
        return preparing.adopt()
    return preparing.from_git() if request.origin == "git" else preparing.from_tarball()


@dataclass(frozen=True, slots=True, kw_only=True)
class _Preparing:
    request: SourceRequest
    root: Path
    workspace: Workspace
    ledger: Ledger
    environ: Mapping[str, str]
    reporter: Reporter
    unchanged: bool
    offline: bool

    def from_git(self) -> tuple[SourceTree, str]:
        """The pinned commit, our patches, and for a release nothing else."""
        tree, fetched = self._fetch()
        patched = self._patch(tree, fetched)
        changed, state = source_state(tree.root, _pinned(tree), environ=self.environ)
        dirty = tuple(name for name in changed if name not in patched.facts["changed"])
        if state != patched.facts["state"]:
            dirty = dirty or changed  # a file of ours that was changed once more
            if self.unchanged:
                raise SourceError(
                    f"the tree {tree.root} was changed by hand: {', '.join(dirty[:8])}",
                    hint=f"undo them (`git -C '{tree.root}' status` lists them), or build with --profile develop",
                )
        return replace(tree, dirty=dirty, state=state), digest_of([patched.digest, state])

    def from_tarball(self) -> tuple[SourceTree, str]:
        """A release's asset. Without git, changes by hand are not seen, and other patches need it unpacked anew."""
        tarball = Path(self.request.repository)

        def unpack() -> StepResult:
            epoch = unpack_source(tarball, destination=self.root, reporter=self.reporter)
            self._apply(self.root)
            return StepResult(trees=(self.root,), facts={"epoch": epoch})

        inputs = {"tarball": fingerprint(tarball), "patches": self._patch_digests()}
        receipt = self.ledger.run("unpack_source", version=1, inputs=inputs, action=unpack)
        epoch = receipt.facts["epoch"]
        tree = SourceTree(root=self.root, origin=tarball.name, commit=None, submodules={}, epoch=epoch)
        return tree, receipt.digest

    def adopt(self) -> tuple[SourceTree, str]:
        """The caller's own tree, as it stands: we look, and change nothing but its build folder."""
        root = Path(self.request.repository)
        commits, epoch = tree_commits(root, environ=self.environ)
        changed, state = source_state(root, commits, environ=self.environ)
        tree = SourceTree(
            root=root,
            origin=str(root),
            commit=commits[""],
            submodules={path: commit for path, commit in commits.items() if path},
            epoch=epoch,
            dirty=changed,
            state=state,
        )
        return tree, digest_of([str(root), commits, state])

    def _fetch(self) -> tuple[SourceTree, Receipt]:
        request, commit = self.request, str(self.request.commit)

        def fetch() -> StepResult:
            tree = fetch_source(
                repository=request.repository,
                commit=commit,
                tag=request.tag,
                tag_binds=request.recipe.evidence == "tag",
                destination=self.root,
                cache=cache_folder(),
                environ=self.environ,
                log=self.workspace.logs / "fetch_source.log",
                reporter=self.reporter,
                offline=self.offline,
            )
            exclude_ours(tree.root)
            return StepResult(
                trees=(tree.root,), facts={"commit": commit, "submodules": dict(tree.submodules), "epoch": tree.epoch}
            )

        inputs = {"repository": request.repository, "commit": commit, "tag": request.tag}
        if not self.ledger.holds("fetch_source", version=1, inputs=inputs):
            self._refuse_to_lose_edits()
        receipt = self.ledger.run("fetch_source", version=1, inputs=inputs, action=fetch)
        submodules, epoch = receipt.facts["submodules"], receipt.facts["epoch"]
        origin = request.repository
        return SourceTree(root=self.root, origin=origin, commit=commit, submodules=submodules, epoch=epoch), receipt

    def _patch(self, tree: SourceTree, fetched: Receipt) -> Receipt:
        digests = self._patch_digests()

        def patch_tree() -> StepResult:
            restore(tree.root, environ=self.environ, submodules=tree.submodules)
            changed = self._apply(tree.root)
            state = prove(tree.root, _pinned(tree), environ=self.environ, besides=changed)
            return StepResult(trees=(tree.root,), facts={"patches": digests, "changed": changed, "state": state})

        inputs = {"previous": fetched.digest, "patches": digests}
        if not self.ledger.holds("apply_patches", version=1, inputs=inputs):
            self._refuse_to_lose_edits()
        return self.ledger.run("apply_patches", version=1, inputs=inputs, action=patch_tree)

    def _refuse_to_lose_edits(self) -> None:
        """Refuse to make again a tree that somebody edited since it was patched: in `develop` the edits are their work.

        Raises:
            SourceError: naming the files.
        """
        fetched, patched = self.ledger.kept("fetch_source"), self.ledger.kept("apply_patches")
        if not fetched or not patched or not (self.root / ".git").exists():
            return
        pinned = {"": str(fetched.get("commit", "")), **fetched["submodules"]}
        if not pinned[""]:
            return
        try:
            changed, state = source_state(self.root, pinned, environ=self.environ)
        except SourceError:
            return  # no tree any more that git could read
        if state == patched["state"]:
            return
        edited = [name for name in changed if name not in patched["changed"]] or list(changed)
        raise SourceError(
            f"{self.root} was edited ({', '.join(edited[:8])}), and this build would overwrite the edits",
            hint=f"keep the edits: `git -C '{self.root}' diff HEAD > edits.patch`, then `rm -r '{self.root}'`; "
            f"or build that tree as it stands: --source '{self.root}'",
        )

    def _apply(self, root: Path) -> tuple[str, ...]:
        """The recipe's patches and then the caller's, all or none; return the files that they touch."""
        request, patches = self.request, self.request.recipe.patches
        return tuple(apply_patches(root, patches, patches_root=patches_root(), extra=request.extra_patches).files)

    def _patch_digests(self) -> dict[str, str]:
        return {patch.name: fingerprint(patch)["sha256"] for patch in self.request.patches}


def _pinned(tree: SourceTree) -> dict[str, str]:
    return {"": tree.commit or "", **tree.submodules}
