"""What a simulated program can import: an environment that sees the root's packages and has more, and what is ours."""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Sequence
from pathlib import Path

from mps_build.common.environment import fetch_environ
from mps_build.common.errors import BuildEnvironmentError, UsageError
from mps_build.common.files import write_whole
from mps_build.common.known_issues import load_issues
from mps_build.common.process import Command, CommandFailed
from mps_build.common.receipts import digest_of
from mps_build.common.recipe.catalogue import data_root
from mps_build.common.reporting import Reporter
from mps_build.common.wheels.pip_call import (
    Limits,
    certificate_fault,
    limited_pip,
    limits_of_run,
    refused_unchecked,
    run_pip,
)
from mps_build.common.workspace import cache_folder, remove_tree

from .builder.build import Built, held, simulation_folder
from .builder.root import torch_variables

_SETTINGS = "pyvenv.cfg"
_INSTALLED = ".mps-build-installed"


def libraries_of(
    built: Built, *, packages: Sequence[str], folder: Path | None, reporter: Reporter, trust: bool = False
) -> Path | None:
    """Return the environment of a program that wants packages or names an environment; None where it does neither.

    Args:
        packages: requirements, as pip reads them. folder: the environment; None: one in the cache for these packages.
        trust: take packages of which the index gives no hash.

    Raises:
        UsageError: the folder is an environment of another Python, or holds something else.
        BuildEnvironmentError: a package could not be had.
        RefusedForSafety: the index gives no hash of one.
    """
    if not packages and folder is None:
        return None
    wanted = sorted(set(packages))
    home = folder or simulation_folder() / "libraries" / digest_of([str(built.root.python), *wanted])[:16]
    with held(simulation_folder() / "libraries.lock", reporter) as watched:
        limits = limits_of_run(trust=trust)
        _fill(built, home, wanted, is_named=folder is not None, reporter=watched, limits=limits)
    return home


def _fill(built: Built, home: Path, wanted: list[str], *, is_named: bool, reporter: Reporter, limits: Limits) -> None:
    log = simulation_folder() / "logs" / "libraries.log"
    if not _is_of(home, built):
        if home.exists() and (not is_named or any(home.iterdir())):
            if is_named:
                raise UsageError(
                    f"--venv {home}: is not an environment of the simulated Python",
                    hint="name a folder that is not there yet: it is made",
                )
            remove_tree(home)
        make = (str(built.root.python), "-m", "venv", "--system-site-packages", "--without-pip", str(home))
        _run(built, make, log, reporter, "Make it")
    if wanted and _installed(home) != wanted:
        pip = limited_pip(built.root.python, limits=limits)
        argv = (*pip, "--python", str(home / "bin/python"), "install", "--disable-pip-version-check", *wanted)
        _run(built, argv, log, reporter, f"Install {', '.join(wanted)}")
        (home / _INSTALLED).write_text("\n".join(wanted), encoding="utf-8")


def _is_of(home: Path, built: Built) -> bool:
    """Whether a folder is an environment that sees the root's packages."""
    try:
        text = (home / _SETTINGS).read_text(encoding="utf-8")
    except OSError:
        return False
    facts = dict(line.split(" = ", 1) for line in text.splitlines() if " = " in line)
    return facts.get("home") == str(built.root.python.parent) and facts.get("include-system-site-packages") == "true"


def _installed(home: Path) -> list[str]:
    try:
        return (home / _INSTALLED).read_text(encoding="utf-8").splitlines()
    except OSError:
        return []


def _run(built: Built, argv: Sequence[str], log: Path, reporter: Reporter, title: str) -> None:
    reporter.started(title)
    environ = {**fetch_environ(os.environ), "LD_LIBRARY_PATH": str(built.folder), **torch_variables(built.site)}
    try:
        run_pip(Command(argv=tuple(argv), environ=environ), log=log, tell=reporter.line, every=False)
    except CommandFailed as failure:
        text = "\n".join(failure.tail)
        if unchecked := refused_unchecked(text, wanted=title):
            raise unchecked from failure
        if fault := certificate_fault(text, wanted=title):
            raise BuildEnvironmentError(fault[0], hint=fault[1]) from failure
        said = "\n".join(failure.tail[-4:])
        raise BuildEnvironmentError(f"{title}: {said}", hint=f"the whole output is in {log}") from failure
    reporter.done()


_PLUGIN = Path(__file__).resolve().parents[1] / "pytest_plugin"
_AS_MAC = Path(__file__).parent / "python" / "as_mac.py"


def plugin_folder() -> Path:
    """Return the folder that holds `mps_build` as simulated programs see it, made once for each of its versions.

    The tool's own folder would not do: a simulated program has another Python, and packages of its own.
    """
    issues = data_root() / "tests/device/known_issues.yaml"
    sources = sorted(_PLUGIN.glob("*.py"))
    digest = digest_of([path.read_text(encoding="utf-8") for path in (*sources, _AS_MAC, issues)])[:16]
    home = cache_folder() / "simulation" / "plugin" / digest
    if home.is_dir():
        return home
    part = home.with_name(f".{digest}.{os.getpid()}")
    package = part / "mps_build" / _PLUGIN.name
    package.mkdir(parents=True, exist_ok=True)
    (part / "mps_build" / "__init__.py").touch()
    shutil.copyfile(_AS_MAC, package.parent / _AS_MAC.name)
    for path in sources:
        shutil.copyfile(path, package / path.name)
    rows = [{**issue.model_dump(mode="json"), "where": list(issue.places)} for issue in load_issues(issues)]
    write_whole(package / "known_issues.json", json.dumps(rows, indent=1) + "\n")
    try:
        part.rename(home)
    except OSError:  # another process was faster
        remove_tree(part)
    return home
