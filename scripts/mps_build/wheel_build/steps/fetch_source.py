"""Recipe -> SourceTree: the pinned commit with all its submodules, through a mirror that later builds share."""

from __future__ import annotations

import configparser
import posixpath
import threading
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path

from mps_build.common.addresses import address_fault, check_address
from mps_build.common.errors import SourceError, UsageError
from mps_build.common.git import (
    TRANSPORTS,
    DamagedRepository,
    answer,
    ask_remote,
    check_ref,
    git,
)
from mps_build.common.mirror import Mirror, mirror_of
from mps_build.common.reporter import Reporter
from mps_build.common.workspace import remove_tree

from ..artifacts import SourceTree
from ..source_state import prove

WORKERS = 8


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
    if len(ref) == 40 and all(letter in "0123456789abcdef" for letter in ref):
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
