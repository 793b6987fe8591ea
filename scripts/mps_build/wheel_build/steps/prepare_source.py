"""The source of a build: fetched at its pinned commit, unpacked, or the caller's own; patched; in a known state."""

from __future__ import annotations

import configparser
import posixpath
import shutil
import tarfile
import threading
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from pathlib import Path

from mps_build.common.errors import SourceError, UsageError
from mps_build.common.git import (
    TRANSPORTS,
    DamagedRepository,
    Mirror,
    address_fault,
    answer,
    ask_remote,
    check_address,
    check_ref,
    git,
    mirror_of,
)
from mps_build.common.receipts import Ledger, Receipt, StepResult, digest_of, fingerprint
from mps_build.common.recipe.catalogue import patches_root
from mps_build.common.reporting import Reporter
from mps_build.common.workspace import Workspace, cache_folder, remove_tree

from ..artifacts import SourceTree
from ..build_request import SourceRequest
from ..patches.apply import apply_patches
from ..source_state import exclude_ours, prove, restore, source_state, tree_commits

WORKERS = 8


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


@dataclass(kw_only=True)
class _Progress:
    """Bytes received over all parallel fetches, passed to one reporter."""

    reporter: Reporter
    received: dict[str, int] = field(default_factory=dict)
    lock: threading.Lock = field(default_factory=threading.Lock)

    def update(self, url: str, count: int) -> None:
        with self.lock:
            self.received[url] = count
            note = f"{len(self.received)} repositories" if len(self.received) > 1 else ""
            self.reporter.advanced(sum(self.received.values()), note=note)


def fetch_source(
    *,
    repository: str,
    commit: str,
    tag: str | None,
    tag_binds: bool = True,
    destination: Path,
    cache: Path,
    environ: Mapping[str, str],
    log: Path,
    reporter: Reporter,
    offline: bool = False,
) -> SourceTree:
    """Return the tree at `commit` in `destination`, made anew there.

    Args:
        tag: compared with what the repository says it is today; a tag that has moved is an error.
        tag_binds: False where the pin comes from a wheel, not from the tag: a difference is then only reported.

    Raises:
        SourceError: network, missing commit or submodule, moved tag. What was fetched stays in the
            mirror, so that the next try fetches only the rest. Or what was written is not what the commits hold.
    """
    check_address(repository, what="the repository", schemes=TRANSPORTS)
    reporter.started(f"Fetch {repository}", unit="bytes")
    mirror = mirror_of(repository, cache=cache, environ=environ, log=log)
    if not offline and not mirror.has(commit):
        if tag:
            _check_tag(mirror, tag, commit, reporter if not tag_binds else None)
        else:
            ask_remote(repository, "HEAD", environ=environ)
    progress = _Progress(reporter=reporter)
    remove_tree(destination)
    submodules = _check_out(mirror, commit, destination, progress=progress, offline=offline)
    pending = [(path, *pinned) for path, pinned in submodules.items()]
    found: dict[str, str] = {}
    with ThreadPoolExecutor(WORKERS) as pool:
        while pending:
            jobs = [
                (path, url, pinned, pool.submit(_submodule, mirror, url, pinned, destination / path, progress, offline))
                for path, url, pinned in pending
            ]
            pending = []
            for path, _url, pinned, job in jobs:
                found[path] = pinned
                pending += [(posixpath.join(path, below), *what) for below, what in job.result().items()]
    prove(destination, {"": commit, **found}, environ=environ)
    epoch = int(answer(git("show", "-s", "--format=%ct", commit, "--", cwd=destination, environ=environ)))
    reporter.done(f"{len(found)} submodules" if found else "")
    return SourceTree(
        root=destination, origin=repository, commit=commit, submodules=dict(sorted(found.items())), epoch=epoch
    )


def resolve_ref(repository: str, ref: str, *, environ: Mapping[str, str]) -> str:
    """Return the 40-hex commit that a branch, tag or full commit names in a repository.

    A name is taken as `refs/heads/NAME` or `refs/tags/NAME`, and as no other that merely ends so.

    Raises:
        UsageError: git may not be given that address or ref, or both a branch and a tag have that name.
        SourceError: there is no such ref.
    """
    if len(ref) == 40 and all(digit in "0123456789abcdef" for digit in ref):
        return ref
    check_address(repository, what="the repository")
    check_ref(ref)
    names = (ref,) if ref == "HEAD" or ref.startswith("refs/") else (f"refs/heads/{ref}", f"refs/tags/{ref}")
    answered = ask_remote(repository, *(f"{name}{peeled}" for name in names for peeled in ("", "^{}")), environ=environ)
    found = {name: answered.get(f"{name}^{{}}") or answered[name] for name in names if name in answered}
    if not found:
        raise SourceError(
            f"{repository} has no branch or tag {ref!r}", hint="give a branch, a tag, or all 40 digits of a commit"
        )
    if len(found) > 1:
        listed = " and ".join(f"{name} ({commit[:12]})" for name, commit in found.items())
        raise UsageError(
            f"{ref!r} is a branch and a tag of {repository}: {listed}", hint=f"say which: {' or '.join(found)}"
        )
    return next(iter(found.values()))


def _check_tag(mirror: Mirror, tag: str, commit: str, reporter: Reporter | None) -> None:
    reference = f"refs/tags/{tag}"
    named = ask_remote(mirror.url, reference, f"{reference}^{{}}", environ=mirror.environ)
    today = named.get(f"{reference}^{{}}") or named.get(reference)
    if reporter and today != commit:
        reporter.line(f"tag {tag} is {today or 'not there'}; the recipe pins the official wheel's commit {commit}")
        return
    if today is None:
        raise SourceError(f"{mirror.url} has no tag {tag}", hint="check the recipe's tag and repository")
    if today != commit:
        raise SourceError(
            f"tag {tag} has moved: the recipe pins {commit}, {mirror.url} says {today}",
            hint="find out why before you trust either, then correct `commit` in the recipe",
        )


def _submodule(
    parent: Mirror, url: str, commit: str, destination: Path, progress: _Progress, offline: bool
) -> Mapping[str, tuple[str, str]]:
    mirror = mirror_of(url, cache=parent.path.parent.parent, environ=parent.environ, log=parent.log)
    return _check_out(mirror, commit, destination, progress=progress, offline=offline)


def _check_out(
    mirror: Mirror, commit: str, destination: Path, *, progress: _Progress, offline: bool
) -> Mapping[str, tuple[str, str]]:
    """Fetch and check out one repository; return its submodules as path -> (url, commit)."""

    def tell(count: int) -> None:
        progress.update(mirror.url, count)

    was_there = mirror.has(commit)
    try:
        mirror.fetch(commit, offline=offline, on_bytes=tell)
        mirror.check_out(commit, destination)
    except SourceError as damaged:
        # A mirror may hold a commit's name but not all of its objects: fetch it anew, once.
        if not was_there and not isinstance(damaged, DamagedRepository):
            raise
        if offline:
            raise SourceError(
                f"the mirror of {mirror.url} is damaged: {damaged}", hint="run once without --offline"
            ) from damaged
        progress.reporter.line(f"the mirror of {mirror.url} is damaged: fetching it again")
        mirror.drop()
        remove_tree(destination / ".git")
        mirror.fetch(commit, on_bytes=tell)
        mirror.check_out(commit, destination)
    return _submodules(mirror, commit, destination)


def _submodules(mirror: Mirror, commit: str, root: Path) -> Mapping[str, tuple[str, str]]:
    """Return what .gitmodules and the tree's gitlinks say: read, never assumed, since lists differ by release."""
    listing = answer(git("ls-tree", "-r", "-z", commit, cwd=root, environ=mirror.environ))
    links = {}
    for entry in filter(None, listing.split("\0")):
        kind, _, path = entry.partition("\t")
        if kind.startswith("160000 "):
            links[path] = kind.split()[2]
    if not links:
        return {}
    urls = _urls(root / ".gitmodules")
    missing = sorted(set(links) - set(urls))
    if missing:
        raise SourceError(f"{mirror.url} at {commit[:12]}: .gitmodules names no address for {', '.join(missing)}")
    resolved = {path: (_absolute(mirror.url, urls[path]), pinned) for path, pinned in links.items()}
    for path, (url, _pinned) in resolved.items():
        if fault := address_fault(url, schemes=TRANSPORTS):
            raise SourceError(
                f"{mirror.url} at {commit[:12]}: the address of its submodule {path}, {url!r}, {fault}",
                hint="do not build this tree: such an address can run a program",
            )
    return resolved


def _urls(gitmodules: Path) -> Mapping[str, str]:
    parser = configparser.ConfigParser(interpolation=None, strict=False)
    text = gitmodules.read_text(encoding="utf-8") if gitmodules.is_file() else ""
    parser.read_string("\n".join(line.strip() for line in text.splitlines()))
    return {parser[name]["path"]: parser[name]["url"] for name in parser.sections() if "path" in parser[name]}


def _absolute(parent: str, url: str) -> str:
    """Resolve a relative submodule address against its parent's, as git does.

    >>> _absolute("https://example.org/a/b.git", "../c.git")
    'https://example.org/a/c.git'
    """
    if not url.startswith(("./", "../")):
        return url
    scheme, separator, rest = parent.rpartition("://")
    return f"{scheme}{separator}{posixpath.normpath(posixpath.join(rest, url))}"


def unpack_source(tarball: Path, *, destination: Path, reporter: Reporter) -> int:
    """Unpack into `destination` (made anew) and return the newest time stamp in it, in seconds since 1970.

    Raises:
        SourceError: it is not a tarball, is cut off, holds more or less than one folder, or a member
            that would leave that folder.
    """
    reporter.started(f"Unpack {tarball.name}", unit="files")
    remove_tree(destination)
    beside = destination.with_name(f".{destination.name}.unpacking")
    shutil.rmtree(beside, ignore_errors=True)
    newest = 0
    try:
        with tarfile.open(tarball) as archive:
            for count, member in enumerate(archive, 1):
                archive.extract(member, beside, filter="data")
                newest = max(newest, int(member.mtime))
                reporter.advanced(count)
    except (tarfile.TarError, EOFError, OSError) as error:
        if isinstance(error, OSError) and error.errno is not None:
            raise  # the disk's fault, not the tarball's
        raise SourceError(f"{tarball} cannot be unpacked: {error}", hint="download it again") from error
    tops = list(beside.iterdir()) if beside.is_dir() else []
    if len(tops) != 1 or not tops[0].is_dir():
        raise SourceError(
            f"{tarball} holds {len(tops)} entries at its top instead of one folder",
            hint="use the release's own asset (pytorch-vX.Y.Z.tar.gz), which has the submodules",
        )
    tops[0].replace(destination)
    beside.rmdir()
    reporter.done()
    return newest
