"""A series of patches tried at a commit, before its source is fetched: only the files that they name are read."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path, PurePosixPath

from mps_build.common.errors import PatchError, SourceError
from mps_build.common.git import git, run_git
from mps_build.common.mirror import mirror_of
from mps_build.common.process import capture

from .file import Patch
from .survey import survey


def try_at_commit(
    patches: Sequence[Patch], *, repository: str, commit: str, cache: Path, environ: Mapping[str, str], offline: bool
) -> None:
    """Try the series on the files of `commit`; nothing is kept.

    They come from the build's mirror or a local repository where that has the commit, else from the repository itself,
    without its blobs: some seconds for PyTorch.

    Raises:
        PatchError: one does not fit, with the hunk; or its file is not there.
        SourceError: the files cannot be had.
    """
    files = tuple(dict.fromkeys(file for patch in patches for file in patch.files))
    with tempfile.TemporaryDirectory(prefix="mps-build-patched-files-") as name:
        folder = Path(name).resolve()
        with _holding(commit, repository=repository, cache=cache, environ=environ, offline=offline) as holder:
            for file in files:
                _copy(holder, commit, file, folder / file, environ=environ)
        standings = survey(folder, patches)
    wrong = next((standing for standing in standings if standing.state != "applies"), None)
    if wrong is None:
        return
    said = {
        "upstream": f"{wrong.patch.name} does not fit: {commit[:12]} holds it already",
        "absent": f"{wrong.patch.name} does not fit: {commit[:12]} lacks a file that it changes",
    }
    raise PatchError(
        said.get(wrong.state, str(wrong.misfit)), hint="give the source that the recipe pins, or leave the patch out"
    )


@contextmanager
def _holding(commit: str, *, repository: str, cache: Path, environ: Mapping[str, str], offline: bool) -> Iterator[Path]:
    """Give a repository that has the commit's tree, and its files at least by a fetch of each."""
    mirror = mirror_of(repository, cache=cache, environ=environ, log=cache / "unused.log")
    local = Path(repository)
    if mirror.has(commit):
        yield mirror.path
    elif local.is_dir():
        yield local
    elif offline:
        raise SourceError("the source is not in the cache, and --offline fetches nothing")
    else:
        with tempfile.TemporaryDirectory(prefix="mps-build-tree-") as name:
            folder = Path(name)
            log = folder / "git.log"
            run_git(git("init", "-q", "--bare", "--template=", "--", str(folder / "bare"), environ=environ), log=log)
            remote = {"url": repository, "promisor": "true", "partialclonefilter": "blob:none"}
            for key, value in remote.items():
                run_git(git("config", f"remote.origin.{key}", value, cwd=folder / "bare", environ=environ), log=log)
            fetch = ("fetch", "-q", "--no-tags", "--depth=1", "--filter=blob:none", "origin", commit)
            run_git(git(*fetch, cwd=folder / "bare", environ=environ), log=log, timeout_seconds=300.0)
            yield folder / "bare"


def _copy(holder: Path, commit: str, file: PurePosixPath, destination: Path, *, environ: Mapping[str, str]) -> None:
    """Write one file of the commit as it is stored; nothing where the commit lacks it."""
    row = capture(git("ls-tree", "-z", commit, "--", str(file), cwd=holder, environ=environ), timeout_seconds=120)
    if not row.ok:
        raise SourceError(f"{commit[:12]} cannot be read: {row.stderr.strip()}")
    mode, _, rest = row.stdout.partition(" ")
    if not rest:
        return
    if mode not in ("100644", "100755"):
        raise PatchError(f"{file} of {commit[:12]} is not a file: nothing is patched there")
    # By `git archive` nothing would be converted either, but for files with export-subst.
    found = capture(git("cat-file", "blob", f"{commit}:{file}", cwd=holder, environ=environ), timeout_seconds=120)
    if not found.ok:
        raise SourceError(f"{file} of {commit[:12]} cannot be read: {found.stderr.strip()}")
    destination.parent.mkdir(parents=True, exist_ok=True)
    destination.write_text(found.stdout, encoding="utf-8", newline="")
