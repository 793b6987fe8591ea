"""Where things lie: home folder, the work folder of each recipe, cache, wheelhouse; and who holds a tree."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from .errors import TreeInUse, UsageError
from .files import locked


def home_folder(*, hint: str = "set HOME to a folder that you may write to") -> Path:
    """Return the user's home folder.

    Raises:
        UsageError: HOME is not set, and the user database does not know this user.
    """
    try:
        return Path.home()
    except RuntimeError as error:
        raise UsageError(
            f"there is no home folder: HOME is not set, and user {os.getuid()} is not in the user database", hint=hint
        ) from error


def expanded(path: Path | str) -> Path:
    """Return a path with its `~` or `~name` written out.

    Raises:
        UsageError: there is no such home folder.
    """
    try:
        return Path(path).expanduser()
    except RuntimeError as error:
        raise UsageError(
            f"{path}: there is no home folder for {Path(path).parts[0]}", hint="write the path out, from / on"
        ) from error


PACKAGE = Path(__file__).resolve().parents[1]
CHECKOUT = PACKAGE.parents[1]


@dataclass(frozen=True, slots=True, kw_only=True)
class Workspace:
    """The folders of one recipe's build; nothing in here is made before it is needed."""

    root: Path

    @property
    def source(self) -> Path:
        """The patched source tree, shared by all profiles and Pythons."""
        return self.root / "source"

    @property
    def build(self) -> Path:
        """The folder of the build folders, one for each profile."""
        return self.root / "build"

    @property
    def logs(self) -> Path:
        """The folder of the steps' whole output."""
        return self.root / "logs"

    @property
    def receipts(self) -> Path:
        """The folder of the receipts that spare a step."""
        return self.root / "receipts"

    @property
    def backend(self) -> Path:
        """Where the build back end is installed: one path for all Pythons (it wipes its cache when moved)."""
        return self.root / "backend"

    def environment(self, profile: str, python: str) -> Path:
        """Return the virtual environment of a profile ("release") and a Python ("3.12")."""
        return self.root / "environments" / f"{profile}-{python}"

    @contextmanager
    def held(self) -> Iterator[None]:
        """Hold this tree for one build.

        Raises:
            TreeInUse: another build holds it; the message names its process.
        """
        self.root.mkdir(parents=True, exist_ok=True)

        def refuse(holder: str) -> None:
            raise TreeInUse(
                f"{self.root} is in use by process {holder}",
                hint=f"wait for it, stop it (`kill {holder}`), or set MPS_BUILD_WORK to another folder",
            )

        with locked(self.root / "lock", on_wait=refuse):
            yield


def in_checkout() -> bool:
    """True where this package runs from a clone, not from an installed wheel."""
    return (CHECKOUT / "noxfile.py").is_file()


def work_folder() -> Path:
    """Return the folder of all builds: MPS_BUILD_WORK, else work/ in the clone, else work/ where the caller stands."""
    chosen = os.environ.get("MPS_BUILD_WORK")
    if chosen:
        return Path(chosen).absolute()
    return (CHECKOUT if in_checkout() else Path.cwd()) / "work"


def cache_folder() -> Path:
    """Return the folder of what is fetched once: MPS_BUILD_CACHE, else the user's cache folder."""
    chosen = os.environ.get("MPS_BUILD_CACHE")
    if chosen:
        return Path(chosen).absolute()
    base = os.environ.get("XDG_CACHE_HOME")
    if base:
        return Path(base) / "mps-build"
    return home_folder(hint="set MPS_BUILD_CACHE to a folder that you may write to, or HOME") / ".cache" / "mps-build"


def wheelhouse() -> Path:
    """Return the folder of finished wheels: wheelhouse/ in the clone, else where the caller stands."""
    return (CHECKOUT if in_checkout() else Path.cwd()) / "wheelhouse"


def remove_tree(path: Path) -> None:
    """Remove a folder of ours, if it is there, in a way that an interruption cannot leave half a one in its place."""
    if not path.exists() and not path.is_symlink():
        return
    doomed = path.with_name(f".{path.name}.removed.{os.getpid()}")
    path.rename(doomed)
    shutil.rmtree(doomed)
