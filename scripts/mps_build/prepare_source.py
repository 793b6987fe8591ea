"""The source's part of the pipeline: fetched, patched, and in a state that is known."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from .artifacts import SourceTree
from .build_plan import BuildRequest
from .errors import SourceError
from .process import Reporter
from .receipts import Ledger, Made, Receipt, digest_of, fingerprint
from .steps.apply_patches import apply_patches
from .steps.fetch_source import fetch_source
from .steps.source_state import exclude_ours, restore, source_state
from .workspace import Workspace, cache_folder


def prepare_source(
    request: BuildRequest, *, workspace: Workspace, ledger: Ledger, environ: Mapping[str, str], reporter: Reporter
) -> tuple[SourceTree, str]:
    """Return the patched tree and a digest that stands for all of it.

    Raises:
        SourceError: it could not be had, or a release's tree was changed by hand.
        PatchError: a patch does not fit.
    """
    tree, fetched = _fetch(request, workspace, ledger, environ, reporter)
    patched = _patch(request, tree, fetched, ledger, environ)
    changed, state = source_state(tree.root, _pinned(tree), environ=environ)
    dirty = tuple(name for name in changed if name not in patched.facts["changed"])
    if state != patched.facts["state"]:
        dirty = dirty or changed  # a file of ours that was changed once more
        if request.profile == "release":
            raise SourceError(
                f"the tree {tree.root} was changed by hand: {', '.join(dirty[:8])}",
                hint=f"take it back (`git -C '{tree.root}' status` shows what), or build with --profile develop",
            )
    return replace(tree, dirty=dirty, state=state), digest_of([patched.digest, state])


def _fetch(
    request: BuildRequest, workspace: Workspace, ledger: Ledger, environ: Mapping[str, str], reporter: Reporter
) -> tuple[SourceTree, Receipt]:
    def fetch() -> Made:
        tree = fetch_source(
            repository=request.repository,
            commit=request.commit,
            tag=request.tag,
            destination=workspace.source,
            cache=cache_folder(),
            environ=environ,
            log=workspace.logs / "fetch_source.log",
            reporter=reporter,
            offline=request.offline,
        )
        exclude_ours(tree.root)
        return Made(trees=(tree.root,), facts={"submodules": dict(tree.submodules), "epoch": tree.epoch})

    inputs = {"repository": request.repository, "commit": request.commit, "tag": request.tag}
    receipt = ledger.run("fetch_source", version=1, inputs=inputs, action=fetch)
    tree = SourceTree(
        root=workspace.source,
        origin=request.repository,
        commit=request.commit,
        submodules=receipt.facts["submodules"],
        epoch=receipt.facts["epoch"],
    )
    return tree, receipt


def _patch(
    request: BuildRequest, tree: SourceTree, fetched: Receipt, ledger: Ledger, environ: Mapping[str, str]
) -> Receipt:
    digests = {patch.name: fingerprint(patch)["sha256"] for patch in request.patches}

    def patch_tree() -> Made:
        restore(tree.root, environ=environ, submodules=tree.submodules)
        for folder, names in request.patch_series():
            apply_patches(tree.root, names, patches_root=folder)
        changed, state = source_state(tree.root, _pinned(tree), environ=environ)
        return Made(trees=(tree.root,), facts={"patches": digests, "changed": changed, "state": state})

    inputs = {"previous": fetched.digest, "patches": digests}
    return ledger.run("apply_patches", version=1, inputs=inputs, action=patch_tree)


def _pinned(tree: SourceTree) -> dict[str, str]:
    return {"": tree.commit or "", **tree.submodules}
