"""Source tree -> its state: what differs from the pinned commit, as names and as one digest.

`git status` believes an index (and its flags: assume-unchanged, skip-worktree), filters, attributes and lists of
ignored files that anybody's settings can name. Here every file is hashed as it lies on the disk, and compared blob by
blob. What the commit itself asks for holds: its .gitattributes (CRLF in a .bat, say) and its .gitignore, and no other.
"""

from __future__ import annotations

import hashlib
import os
import stat
import tempfile
from collections.abc import Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, replace
from itertools import chain, islice
from pathlib import Path

from mps_build.common.errors import SourceError
from mps_build.common.git import answer, git
from mps_build.common.process import Command

OURS = ("/build/", ".mps-build-*")
_LINK, _SUBMODULE = "120000", "160000"
_PIECE, _CHUNK, _MOST_ARGUMENTS, _SECONDS = 1 << 20, 500, 400, 300.0


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


@dataclass(frozen=True, slots=True, kw_only=True)
class Entry:
    """What a commit says of one path."""

    mode: str
    blob: str
    path: str


def differences(top: Path, commit: str, *, environ: Mapping[str, str], ours: Sequence[str] = ()) -> dict[str, str]:
    """Return what differs from the commit, by path, in the words of `git status --porcelain`.

    That is " M" (changed), " D" (missing), "??" (not in the commit, and not ignored by its .gitignore). A renamed file
    is two of these. Submodules are not looked into.

    Args:
        ours: patterns, as in .gitignore, of what we leave in the tree.

    Raises:
        SourceError: git cannot read the commit.
    """
    entries = _entries(top, commit, environ)
    files = [entry for entry in entries if entry.mode != _SUBMODULE]
    look = _Looker(top)
    with ThreadPoolExecutor() as pool:
        chunks = [files[start : start + _CHUNK] for start in range(0, len(files), _CHUNK)]
        found = dict(chain.from_iterable(pool.map(look.codes, chunks)))
    with _aside(top, commit, environ, is_sha256=bool(entries) and len(entries[0].blob) == 64) as aside:
        suspects = [entry for entry in files if found[entry.path] == " M"]
        for path in aside.converted(suspects):
            found[path] = ""
        known = {entry.path for entry in entries}
        found |= dict.fromkeys(sorted({*_each_file(top, aside.others(ours))} - known), "??")
    return {path: code for path, code in found.items() if code}


def _each_file(top: Path, names: Iterable[str]) -> Iterator[str]:
    """Yield the names, and of a repository within the tree, which git gives as one folder, each file below it."""
    for name in names:
        if not name.endswith("/"):
            yield name
            continue
        for folder, folders, files in os.walk(top / name):
            folders[:] = [each for each in folders if each != ".git"]
            yield from (str(Path(folder, each).relative_to(top)) for each in files if each != ".git")


def content_digest(path: Path) -> bytes:
    """Return a sha256 of a file's or a link's content; of anything else, nothing."""
    try:
        if path.is_symlink():
            return hashlib.sha256(os.fsencode(path.readlink())).digest()
        return hashlib.sha256(path.read_bytes()).digest() if path.is_file() else b""
    except FileNotFoundError:
        return b""


def _entries(top: Path, commit: str, environ: Mapping[str, str]) -> tuple[Entry, ...]:
    listing = _answer(git("ls-tree", "-r", "-z", "--full-tree", commit, cwd=top, environ=environ))
    rows = (row.partition("\t") for row in filter(None, listing.split("\0")))
    return tuple(Entry(mode=what.split()[0], blob=what.split()[2], path=path) for what, _, path in rows)


def _answer(command: Command) -> str:
    return answer(command, timeout_seconds=_SECONDS, errors="surrogateescape")


class _Looker:
    """Says of a file what it is beside the commit's; remembers which folders are folders, and no links to elsewhere."""

    def __init__(self, top: Path) -> None:
        self._top = top
        self._folders: dict[Path, bool] = {top: True}

    def codes(self, entries: Sequence[Entry]) -> list[tuple[str, str]]:
        """Return (path, code) of each."""
        return [(entry.path, self._code(entry)) for entry in entries]

    def _code(self, entry: Entry) -> str:
        place = self._top / entry.path
        try:
            status = place.lstat() if self._is_folder(place.parent) else None
        except (FileNotFoundError, NotADirectoryError):
            status = None
        if status is None or stat.S_ISDIR(status.st_mode):
            return " D"
        if entry.mode == _LINK:
            is_same = stat.S_ISLNK(status.st_mode) and entry.blob == _blob_of(os.fsencode(place.readlink()), entry)
        else:
            is_same = (
                stat.S_ISREG(status.st_mode)
                and bool(status.st_mode & 0o100) == (entry.mode == "100755")
                and entry.blob == _blob_at(place, status.st_size, entry)
            )
        return "" if is_same else " M"

    def _is_folder(self, path: Path) -> bool:
        if path not in self._folders:
            self._folders[path] = self._is_folder(path.parent) and stat.S_ISDIR(path.lstat().st_mode)
        return self._folders[path]


def _blob_of(data: bytes, entry: Entry) -> str:
    return _hasher(len(data), entry, data).hexdigest()


def _blob_at(place: Path, size: int, entry: Entry) -> str:
    hasher = _hasher(size, entry)
    with place.open("rb", buffering=0) as file:
        while piece := file.read(_PIECE):
            hasher.update(piece)
    return hasher.hexdigest()


def _hasher(size: int, entry: Entry, data: bytes = b"") -> hashlib._Hash:
    kind = hashlib.sha256 if len(entry.blob) == 64 else hashlib.sha1
    return kind(b"blob %d\0%b" % (size, data), usedforsecurity=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Aside:
    """A repository of our own with the commit's index and the tree's objects.

    It has no settings, and no attributes and excludes but those that the commit holds.
    """

    folder: Path
    top: Path
    objects: str
    environ: Mapping[str, str]

    def ask(self, *arguments: str, work_tree: Path) -> str:
        command = git(
            f"--git-dir={self.folder / '.git'}", f"--work-tree={work_tree}", *arguments,
            cwd=work_tree, environ=self.environ,
        )  # fmt: skip
        assert command.environ is not None
        return _answer(replace(command, environ={**command.environ, "GIT_OBJECT_DIRECTORY": self.objects}))

    def others(self, ours: Sequence[str]) -> list[str]:
        """Return the files that the commit does not have and its .gitignore does not name.

        A .gitignore that is none of the commit's may name itself: each of them is one of these files.
        """
        own = [f"--exclude={pattern}" for pattern in ours]
        listed = self._listed("--exclude-per-directory=.gitignore", *own)
        if (self.top / ".gitignore").is_file():
            own.append("--exclude-from=.gitignore")
        return listed + self._listed(*own, "--", ":(glob)**/.gitignore")

    def _listed(self, *options: str) -> list[str]:
        return self.ask("ls-files", "--others", "-z", *options, work_tree=self.top).split("\0")[:-1]

    def converted(self, suspects: Sequence[Entry]) -> Iterator[str]:
        """Yield those that hold what git writes for their blob where the commit's own .gitattributes convert it."""
        left = iter(suspects)
        while batch := list(islice(left, _MOST_ARGUMENTS)):
            out = self.folder / "out"
            out.mkdir(exist_ok=True)
            self.ask("checkout-index", "--force", "--", *(entry.path for entry in batch), work_tree=out)
            for entry in batch:
                if _same(out / entry.path, self.top / entry.path):
                    yield entry.path


@contextmanager
def _aside(top: Path, commit: str, environ: Mapping[str, str], *, is_sha256: bool) -> Iterator[_Aside]:
    objects = _answer(git("rev-parse", "--git-path", "objects", cwd=top, environ=environ))
    with tempfile.TemporaryDirectory(prefix="mps-build-tree-") as name:
        folder = Path(name).resolve()
        kind = ("--object-format=sha256",) if is_sha256 else ()
        _answer(git("init", "-q", "--template=", *kind, "--", str(folder), environ=environ))
        aside = _Aside(folder=folder, top=top, objects=str(top / objects), environ=environ)
        aside.ask("read-tree", commit, work_tree=folder)
        yield aside


def _same(one: Path, other: Path) -> bool:
    """True for two plain files with the same bytes and the same right to be executed."""
    try:
        left, right = one.lstat(), other.lstat()
        return (
            (left.st_size, left.st_mode & 0o100) == (right.st_size, right.st_mode & 0o100)
            and stat.S_ISREG(left.st_mode)
            and stat.S_ISREG(right.st_mode)
            and one.read_bytes() == other.read_bytes()
        )
    except FileNotFoundError:
        return False
