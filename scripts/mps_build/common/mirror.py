"""The mirror: one bare repository per address in the cache, shallow, holding the commits that were asked for."""

from __future__ import annotations

import hashlib
import os
import re
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from .errors import SourceError
from .git import answer, git, run_git, succeeds
from .lock import locked
from .workspace import remove_tree


@dataclass(frozen=True, slots=True, kw_only=True)
class Mirror:
    """The bare repository that stands for one address."""

    url: str
    path: Path
    environ: Mapping[str, str]
    log: Path

    def has(self, commit: str) -> bool:
        """True if the commit was fetched whole (its ref is written only after the fetch succeeded)."""
        if not (self.path / "HEAD").is_file():
            return False
        ask = git(
            "rev-parse", "-q", "--verify", f"refs/mps-build/{commit}^{{commit}}", cwd=self.path, environ=self.environ
        )
        return succeeds(ask)

    def fetch(
        self, commit: str, *, offline: bool = False, on_bytes: Callable[[int], None] = lambda count: None
    ) -> None:
        """Make the commit present.

        Raises:
            SourceError: offline and it is not here; or the network failed; or there is no such commit.
        """
        if self.has(commit):
            return
        if offline:
            raise SourceError(
                f"{commit[:12]} of {self.url} is not in the cache, and --offline does not allow fetching it",
                hint="run once without --offline",
            )
        with self._held():
            if not (self.path / "HEAD").is_file():
                answer(git("init", "-q", "--bare", "--template=", "--", str(self.path), environ=self.environ))
                answer(git("config", "uploadpack.allowAnySHA1InWant", "true", cwd=self.path, environ=self.environ))
            fetch = (
                "fetch",
                "--progress",
                "--no-tags",
                "--depth=1",
                "--",
                self.url,
                f"+{commit}:refs/mps-build/{commit}",
            )
            run_git(git(*fetch, cwd=self.path, environ=self.environ), log=self.log, on_bytes=on_bytes)

    def check_out(self, commit: str, destination: Path) -> None:
        """Put the commit's files into `destination`, a repository of its own (it outlives the mirror)."""
        destination.mkdir(parents=True, exist_ok=True)
        run_git(git("init", "-q", "--template=", "--", str(destination), environ=self.environ), log=self.log)
        fetch = git(
            "fetch", "-q", "--no-tags", "--depth=1", "--", str(self.path), commit, cwd=destination, environ=self.environ
        )
        run_git(fetch, log=self.log)
        checkout = git("checkout", "-q", "--force", "--detach", commit, "--", cwd=destination, environ=self.environ)
        run_git(checkout, log=self.log)

    @contextmanager
    def _held(self) -> Iterator[None]:
        """One fetch at a time into one mirror, over threads and processes; what a killed one left is removed."""
        self.path.parent.mkdir(parents=True, exist_ok=True)
        with locked(self.path.with_suffix(".held")):
            for stale in self.path.glob("*.lock"):
                stale.unlink()
            self._drop_half_packs()
            try:
                yield
            finally:
                self._drop_half_packs()

    def _drop_half_packs(self) -> None:
        """Remove packs that git was receiving: it leaves them, up to a gigabyte, when it is ended."""
        for half in self.path.glob("objects/pack/tmp_*"):
            half.unlink(missing_ok=True)

    def drop(self) -> None:
        """Remove this mirror, found damaged; the next fetch makes a new one."""
        remove_tree(self.path)


def mirror_of(url: str, *, cache: Path, environ: Mapping[str, str], log: Path) -> Mirror:
    """Return the mirror of an address; its folder's name tells the address to a person and is unique."""
    readable = re.sub(r"[^A-Za-z0-9.]+", "-", url.removesuffix(".git")).strip("-")[-60:]
    name = f"{readable}-{hashlib.sha256(os.fsencode(url)).hexdigest()[:10]}.git"
    return Mirror(url=url, path=cache / "git" / name, environ=environ, log=log)
