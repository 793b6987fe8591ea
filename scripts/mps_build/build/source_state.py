"""Source tree -> its state: what differs from the pinned commit, as names and as one digest."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping
from pathlib import Path

from mps_build.common.errors import SourceError
from mps_build.common.git import answer, git

OURS = ("/build/", ".mps-build-*")


def exclude_ours(root: Path) -> None:
    """Tell git that what we leave in the tree is not its concern."""
    exclude = root / ".git" / "info" / "exclude"
    if exclude.parent.parent.is_dir():
        exclude.parent.mkdir(exist_ok=True)
        exclude.write_text("\n".join(OURS) + "\n", encoding="utf-8")


def source_state(root: Path, pinned: Mapping[str, str], *, environ: Mapping[str, str]) -> tuple[tuple[str, ...], str]:
    """Return (changed files, digest of all changes) of a tree and its submodules; ((), "") where it is clean.

    Changed means tracked and different, untracked and not ignored, or a repository at another commit.

    Args:
        pinned: the commit of each repository in the tree, by its folder ("" is the tree itself).
    """
    changed: list[str] = []
    whole = hashlib.sha256()
    for folder, commit in sorted(pinned.items()):
        top = root / folder
        head = answer(git("rev-parse", "HEAD", cwd=top, environ=environ))
        if head != commit:
            changed.append(f"{folder or '.'} (at {head[:12]}, not {commit[:12]})")
            whole.update(f"{folder}\0{head}\0".encode("utf-8", "surrogateescape"))
        listing = answer(git("status", "--porcelain", "-z", "--ignore-submodules=all", cwd=top, environ=environ))
        for entry in filter(None, listing.split("\0")):
            path = f"{folder}/{entry[3:]}" if folder else entry[3:]
            changed.append(path)
            whole.update(f"{entry[:2]}\0{path}\0".encode("utf-8", "surrogateescape"))
            file = root / path
            if file.is_file():
                whole.update(hashlib.sha256(file.read_bytes()).digest())
    return (tuple(sorted(changed)), whole.hexdigest()) if changed else ((), "")


def tree_commits(root: Path, *, environ: Mapping[str, str]) -> tuple[dict[str, str], int]:
    """Return the commit of each repository in somebody's own tree ("" is the tree itself), and its date.

    Raises:
        SourceError: it is not a git work tree, or a submodule is missing.
    """
    if not (root / ".git").exists():
        raise SourceError(
            f"{root} is not a git work tree, so its commit is unknown",
            hint="give a clone, an address, or a release's tarball",
        )
    commits = {"": answer(git("rev-parse", "HEAD", cwd=root, environ=environ))}
    listing = answer(git("submodule", "status", "--recursive", cwd=root, environ=environ), timeout_seconds=300)
    for line in listing.splitlines():
        mark, (commit, path) = line[:1], line[1:].split(" ")[:2]
        if mark == "-":
            raise SourceError(
                f"the submodule {path} of {root} is missing",
                hint=f"git -C '{root}' submodule update --init --recursive",
            )
        commits[path] = commit
    return commits, int(answer(git("show", "-s", "--format=%ct", "HEAD", cwd=root, environ=environ)))


def restore(root: Path, *, environ: Mapping[str, str], submodules: Iterable[str]) -> None:
    """Take every change of a tree of ours back (earlier patches), leaving ignored build products."""
    for folder in ("", *submodules):
        top = root / folder
        answer(git("checkout", "-q", "--force", "HEAD", "--", ".", cwd=top, environ=environ), timeout_seconds=300)
        answer(git("clean", "-q", "-f", "-d", cwd=top, environ=environ), timeout_seconds=300)
