"""Source tree -> its state: what differs from the pinned commit, as names and as one digest."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping
from pathlib import Path

from mps_build.common.errors import SourceError
from mps_build.common.git import answer, git

from .work_tree import content_digest, differences

OURS = ("/build/", ".mps-build-*")


def exclude_ours(root: Path) -> None:
    """Tell git that what we leave in the tree is not its concern."""
    exclude = root / ".git" / "info" / "exclude"
    if exclude.parent.parent.is_dir():
        exclude.parent.mkdir(exist_ok=True)
        exclude.write_text("\n".join(OURS) + "\n", encoding="utf-8")


def source_state(root: Path, pinned: Mapping[str, str], *, environ: Mapping[str, str]) -> tuple[tuple[str, ...], str]:
    """Return (changed files, digest of all changes) of a tree and its submodules; ((), "") where it is clean.

    Changed means other than in the commit, or not in it and not ignored by its own .gitignore; or a repository at
    another commit. Every file is hashed: no setting and no index of git's says what is the same.

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
        found = differences(top, head, environ=environ, ours=() if folder else OURS)
        for name, code in sorted(found.items(), key=lambda row: (row[1] == "??", row[0])):
            path = f"{folder}/{name}" if folder else name
            changed.append(path)
            whole.update(f"{code}\0{path}\0".encode("utf-8", "surrogateescape"))
            whole.update(content_digest(root / path))
    return (tuple(sorted(changed)), whole.hexdigest()) if changed else ((), "")


def prove(root: Path, pinned: Mapping[str, str], *, environ: Mapping[str, str], besides: Iterable[str] = ()) -> str:
    """Return the state of a tree that git has just written, and that must be what its commits hold.

    Args:
        besides: files that may differ: those of patches.

    Raises:
        SourceError: it is not; the files are named.
    """
    changed, state = source_state(root, pinned, environ=environ)
    if wrong := sorted(set(changed) - set(besides)):
        raise SourceError(
            f"{root} is not what its commit holds: {len(wrong)} files differ: {', '.join(wrong[:8])}",
            hint=f"run the same command again after `rm -rf '{root}'`; if it stays, look at the disk and at what else"
            " writes there",
        )
    return state


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
        here = f"--work-tree={top.absolute()}"  # core.worktree may name a folder that is not ours to clean
        every = ("--force", "--ignore-skip-worktree-bits", "HEAD", "--", ".")
        for words in (("read-tree", "--reset", "HEAD"), ("checkout", "-q", *every), ("clean", "-q", "-f", "-d")):
            answer(git(here, *words, cwd=top, environ=environ), timeout_seconds=300)
