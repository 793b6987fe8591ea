"""Debian packages in a folder: fetched by apt with a state of its own, unpacked by dpkg-deb. Needs no superuser."""

from __future__ import annotations

import os
import shutil
import sys
from collections.abc import Sequence
from pathlib import Path

from mps_build.common.environment import fetch_environ
from mps_build.common.errors import BuildEnvironmentError, DiskFull, HostError
from mps_build.common.files import write_whole
from mps_build.common.process import FETCH_SECONDS, Command, CommandFailed, run_logged
from mps_build.common.reporting import Reporter
from mps_build.wheel_build.rehearsal.chroot import find_mirror

FREE_BYTES = 4_000_000_000
_TOOLS = {"apt-get": "apt", "dpkg-deb": "dpkg", "tar": "tar"}
# The keys that apt checks a suite's signature with, where the host has them in a file of their own.
_KEYRING = Path("/usr/share/keyrings/debian-archive-keyring.gpg")


def check_host(folder: Path) -> None:
    """Refuse a host that cannot hold a simulation, before any work.

    Raises:
        HostError: it is not Linux on x86-64, or a program is missing.
        DiskFull: less is free than packages and objects take.
    """
    reasons = []
    if sys.platform != "linux" or os.uname().machine != "x86_64":
        reasons.append(f"the simulation needs Linux on x86-64, this is {sys.platform} on {os.uname().machine}")
    missing = {tool: package for tool, package in _TOOLS.items() if not shutil.which(tool)}
    if missing:
        reasons.append(f"missing: {', '.join(missing)}")
    if reasons:
        hint = f"on Debian or Ubuntu: apt-get install {' '.join(missing.values())}" if missing else None
        raise HostError("; ".join(reasons), hint=hint)
    existing = next(path for path in (folder, *folder.parents) if path.exists())
    free = shutil.disk_usage(existing).free
    if free < FREE_BYTES:
        raise DiskFull(
            f"{existing} has {free / 1e9:.1f} GB free, a simulation takes {FREE_BYTES / 1e9:.0f} GB",
            hint="free some space, or set MPS_BUILD_CACHE to a folder on another disk",
        )


class Apt:
    """apt for one Debian suite, with its lists, its archives and its (empty) list of what is installed in a folder."""

    def __init__(self, folder: Path, *, suite: str, architecture: str = "amd64", log: Path, reporter: Reporter) -> None:
        self._folder, self._suite, self._log, self._reporter = folder, suite, log, reporter
        self._architecture = architecture

    def fetch(self, packages: Sequence[str]) -> tuple[Path, ...]:
        """Return the archives of the packages and of all that they depend on.

        Raises:
            BuildEnvironmentError: one could not be had; the log holds all.
        """
        self._prepare()
        self._run("update", title=f"Fetch the lists of Debian {self._suite}")
        title = "Fetch the packages"
        self._run("install", "--download-only", "-y", "--no-install-recommends", *packages, title=title)
        return tuple(sorted((self._folder / "cache/archives").glob("*.deb")))

    def fetch_source(self, package: str, folder: Path) -> None:
        """Fetch the files of a source package into a folder; the lists are those of `fetch`.

        Raises:
            BuildEnvironmentError: they could not be had.
        """
        folder.mkdir(parents=True, exist_ok=True)
        self._prepare()
        if not any((self._folder / "state/lists").glob("*Sources*")):
            self._run("update", title=f"Fetch the lists of Debian {self._suite}")
        self._run("source", "--download-only", package, title="Fetch the source package", cwd=folder)

    def _prepare(self) -> None:
        for name in ("state/lists/partial", "cache/archives/partial"):
            (self._folder / name).mkdir(parents=True, exist_ok=True)
        signed = f" [signed-by={_KEYRING}]" if _KEYRING.is_file() else ""
        rows = [f"{kind}{signed} {find_mirror(None)} {self._suite} main\n" for kind in ("deb", "deb-src")]
        write_whole(self._folder / "sources.list", "".join(rows))
        write_whole(self._folder / "status", "")

    def _run(self, *words: str, title: str, cwd: Path | None = None) -> None:
        options = {
            "Dir::State": self._folder / "state",
            "Dir::State::status": self._folder / "status",
            "Dir::Cache": self._folder / "cache",
            "Dir::Etc::sourcelist": self._folder / "sources.list",
            "Dir::Etc::sourceparts": "/dev/null",
            "Dir::Etc::preferencesparts": "/dev/null",
            "APT::Architecture": self._architecture,
            "APT::Architectures": self._architecture,
            "APT::Sandbox::User": "root",  # the archives lie in a folder that no other user may enter
            "Debug::NoLocking": "1",  # of the system's own state, which is not touched
        }
        argv = ("apt-get", "-q", *(word for name, value in options.items() for word in ("-o", f"{name}={value}")))
        self._reporter.started(title)
        done = 0

        def watch(line: str) -> None:
            nonlocal done
            done += line.startswith("Get:")
            self._reporter.advanced(done, note=line[:60])

        environ = {**fetch_environ(os.environ), "LC_ALL": "C.UTF-8"}
        try:
            command = Command(argv=(*argv, *words), cwd=cwd, environ=environ)
            run_logged(command, log=self._log, on_line=watch, timeout_seconds=FETCH_SECONDS)
        except CommandFailed as failure:
            text = "\n".join(failure.tail[-6:])
            raise BuildEnvironmentError(
                f"Debian's packages could not be had ({failure.exit_code}):\n{text}",
                hint=f"run the same command again to continue where it stopped; the whole output is in {self._log}",
            ) from failure
        self._reporter.done()


def unpack(archives: Sequence[Path], root: Path, *, log: Path, reporter: Reporter) -> None:
    """Unpack archives into a folder. No script of a package is run.

    Raises:
        BuildEnvironmentError: one is damaged, or the disk is full.
    """
    reporter.started("Unpack the packages", total=len(archives), unit="packages")
    for done, archive in enumerate(archives, 1):
        try:
            run_logged(Command(argv=("dpkg-deb", "-x", str(archive), str(root))), log=log)
        except CommandFailed as failure:
            raise BuildEnvironmentError(
                f"{archive.name} cannot be unpacked: {' '.join(failure.tail[-2:])}",
                hint=f"remove {archive}, then run the same command again",
            ) from failure
        reporter.advanced(done, total=len(archives), note=archive.name.partition("_")[0])
    reporter.done()
