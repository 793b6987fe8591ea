"""Makes git repositories of a source tree that lies beside its recipe, so that it is fetched like any other.

The commits depend on nothing but the files: fixed dates, fixed author, no configuration of the
user's. That is why sample.yaml can pin one.
"""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from ..errors import SourceError
from ..git import check_machine, no_git_hint
from ..packed import packed_file, texts_of
from ..process import Command, capture

TAG = "v1.0.0"
_DATE = "2026-01-01T00:00:00+00:00"
# Where a repository stands, and how it is served; its objects are checked by git itself.
_COMPARED = ("HEAD", "config", "refs/heads/main")
_UNTRACKED = "__pycache__/\n*.pyc\n.DS_Store\n/build/\n/dist/\n"


@dataclass(frozen=True, slots=True, kw_only=True)
class EmbeddedRepositories:
    """The repositories made of an embedded tree: clone `url`, check out `commit` (tag `tag`), update submodules."""

    url: Path
    commit: str
    tag: str
    submodules: tuple[tuple[str, str], ...]


def materialise(sample_root: Path, destination: Path, *, expected: str | None = None) -> EmbeddedRepositories:
    """Return the repositories of `sample_root` in `destination` (bare, one for each submodule).

    What is there and equal stays: another build may be reading it. A folder named in `.gitmodules`
    becomes a repository of its own, under the file name of its (relative) url, and a gitlink in the
    tree above.

    Args:
        expected: the commit that the recipe pins.

    Raises:
        SourceError: the tree is not there or not what is expected, or git failed.
    """
    beside = destination.with_name(f".{destination.name}.{os.getpid()}")
    shutil.rmtree(beside, ignore_errors=True)
    beside.mkdir(parents=True)
    try:
        name = f"{sample_root.name}.git"
        with _files(sample_root) as files:
            submodules = tuple(
                (path, _commit_tree(files / path, beside / Path(url).name, links=()))
                for path, url in _submodules(files)
            )
            commit = _commit_tree(files, beside / name, links=submodules)
        if expected is not None and commit != expected:
            raise SourceError(
                f"{sample_root} is not what the recipe pins: its commit is {commit}, the recipe's {expected}",
                hint=f"undo the change; if it is intended, put {commit} into {sample_root.name}.yaml",
            )
        if not all(_holds(destination / each.name, each) for each in beside.iterdir()):
            if destination.is_dir() and not destination.is_symlink():
                shutil.rmtree(destination)
            else:
                destination.unlink(missing_ok=True)
            beside.replace(destination)
    finally:
        shutil.rmtree(beside, ignore_errors=True)
    return EmbeddedRepositories(url=destination / name, commit=commit, tag=TAG, submodules=submodules)


@contextmanager
def _files(sample_root: Path) -> Iterator[Path]:
    """Give the tree's folder: as it lies in a clone, or for as long as it is read out of an installation's one file."""
    if sample_root.is_dir():
        yield sample_root
        return
    if not packed_file(sample_root).is_file():
        raise SourceError(
            f"{sample_root}: the recipe's embedded source is missing",
            hint="restore the folder beside the recipe, from a complete checkout or an installed mps-build",
        )
    with tempfile.TemporaryDirectory(prefix="mps-build-source-") as folder:
        for name, text in texts_of(sample_root).items():
            path = Path(folder, name)
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text, encoding="utf-8")
        yield Path(folder)


def _holds(there: Path, wanted: Path) -> bool:
    """True if the repository is the wanted one, all its objects whole."""
    try:
        if any((there / name).read_bytes() != (wanted / name).read_bytes() for name in _COMPARED):
            return False
        _git("--git-dir", str(there), "fsck", "--full", "--strict", "--no-dangling", cwd=wanted)
    except (OSError, SourceError):
        return False
    return True


def _submodules(root: Path) -> tuple[tuple[str, str], ...]:
    """Return (path, url) of each submodule, in the order of the file."""
    if not (root / ".gitmodules").is_file():
        return ()
    listing = _git(
        "config", "--file", str(root / ".gitmodules"), "--get-regexp", r"^submodule\..*\.(path|url)$", cwd=root
    )
    fields: dict[str, dict[str, str]] = {}
    for line in listing.splitlines():
        key, _, value = line.partition(" ")
        name, _, field = key.removeprefix("submodule.").rpartition(".")
        fields.setdefault(name, {})[field] = value
    return tuple((entry["path"], entry["url"]) for entry in fields.values())


def _commit_tree(files: Path, repository: Path, *, links: tuple[tuple[str, str], ...]) -> str:
    """Return the commit of `files` in a new bare repository; `links` are paths that are gitlinks instead."""
    _git("init", "-q", "--bare", "--template=", "--initial-branch=main", str(repository), cwd=files)
    (repository / "info").mkdir(exist_ok=True)
    (repository / "info" / "exclude").write_text(_UNTRACKED, encoding="utf-8")
    inside = (f"--git-dir={repository}", f"--work-tree={files}")
    _git(*inside, "add", "--all", "--", ".", *(f":(exclude){path}" for path, _ in links), cwd=files)
    for path, commit in links:
        _git(*inside, "update-index", "--add", "--cacheinfo", f"160000,{commit},{path}", cwd=files)
    tree = _git(*inside, "write-tree", cwd=files)
    commit = _git(*inside, "commit-tree", "-m", f"mps-build's embedded source, {TAG}", tree, cwd=files)
    _git(*inside, "update-ref", "refs/heads/main", commit, cwd=files)
    _git(*inside, "tag", "--annotate", "-m", TAG, TAG, commit, cwd=files)
    # A shallow fetch asks for the pinned commit by its name.
    _git(*inside, "config", "uploadpack.allowAnySHA1InWant", "true", cwd=files)
    (repository / "index").unlink()
    return commit


def _git(*arguments: str, cwd: Path) -> str:
    command = Command(
        argv=("git", "-c", "core.fileMode=false", "-c", "core.autocrlf=false", "-c", "core.safecrlf=false", *arguments),
        cwd=cwd,
        environ={
            "PATH": os.environ.get("PATH", os.defpath),
            # macOS' git is a shim, which asks for the chosen Xcode.
            **{name: os.environ[name] for name in ("DEVELOPER_DIR",) if name in os.environ},
            "LC_ALL": "C",
            "HOME": os.devnull,
            "GIT_CONFIG_GLOBAL": os.devnull,
            "GIT_CONFIG_NOSYSTEM": "1",
            "GIT_ATTR_NOSYSTEM": "1",
            "GIT_DEFAULT_HASH": "sha1",
            "GIT_AUTHOR_NAME": "mps-build",
            "GIT_AUTHOR_EMAIL": "mps-build@invalid",
            "GIT_AUTHOR_DATE": _DATE,
            "GIT_COMMITTER_NAME": "mps-build",
            "GIT_COMMITTER_EMAIL": "mps-build@invalid",
            "GIT_COMMITTER_DATE": _DATE,
        },
    )
    answer = capture(command, timeout_seconds=60)
    if not answer.ok:
        check_machine(answer.stderr, during="while git makes the sample's commit")
        hint = no_git_hint(answer.stderr) or "is git there, and new enough (2.28)?"
        raise SourceError(f"`{command}` failed: {answer.stderr.strip()}", hint=hint)
    return answer.stdout.strip()
