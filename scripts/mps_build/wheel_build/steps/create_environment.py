"""Lock -> venv: the build requirements, by hash, in an environment of their own."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

from mps_build.common.errors import BuildEnvironmentError, disk_full
from mps_build.common.process import Command, CommandFailed, capture, run_logged
from mps_build.common.reporter import Reporter
from mps_build.common.wheels.cache import own_folder
from mps_build.common.wheels.pip_call import forbidden_by_settings, limited_pip, run_pip
from mps_build.common.workspace import remove_tree


def create_environment(
    *,
    interpreter: Path,
    lock: Path,
    destination: Path,
    backend: Path,
    cache: Path,
    environ: Mapping[str, str],
    log: Path,
    reporter: Reporter,
    offline: bool = False,
    wrap: Callable[[Command], Command] = lambda command: command,
) -> Mapping[str, str]:
    """Make the venv anew in `destination` and return the versions of what is in it.

    What the lock names is kept in the cache, so that the next environment needs no network.

    Args:
        backend: scikit-build-core goes there, one path for all Pythons of a tree: it wipes its CMake
            cache when its own path changes (https://github.com/scikit-build/scikit-build-core).
        wrap: turns each command into the one that is run: the rehearsal's run inside a root.

    Raises:
        BuildEnvironmentError: a requirement is not to be had, or its hash differs.
        DiskFull: pip met a full disk.
    """
    remove_tree(destination)
    reporter.started("Create the build environment")

    def run(*argv: str) -> None:
        with _failures(log):
            run_logged(wrap(Command(argv=argv, environ=environ)), log=log)

    def fetch(*argv: str) -> None:
        with _failures(log):
            run_pip(Command(argv=argv, environ=environ), log=log, tell=reporter.line, wrap=wrap)

    run(str(interpreter), "-m", "venv", str(destination))
    python = str(destination / "bin" / "python")
    options = ("--disable-pip-version-check", "--no-input")
    pip, asking = (python, "-m", "pip", *options), (*limited_pip(python, beside=destination), *options)
    wheels = cache / "wheels" / lock.stem
    install = (*pip, "install", "-q", "--no-index", "--find-links", str(wheels), "--require-hashes", "--no-deps")
    reporter.line(f"install what {lock.name} lists")
    for name, part, how in lock_parts(lock.read_text(encoding="utf-8")):
        chosen = destination / f"{name}.txt"
        chosen.write_text(part, encoding="utf-8")
        if not offline:
            own_folder(cache / "wheels")
            fetch(
                *asking, "download", "-q", "--require-hashes", "--no-deps", *how, "-r", str(chosen), "-d", str(wheels)
            )
        run(*install, *how, "-r", str(chosen))
    backend_lock = backend_lines(lock.read_text(encoding="utf-8"))
    if backend_lock:
        # In place, over what is there: the path must stay, and so must the build folder that names it.
        chosen = destination / "backend-requirements.txt"
        chosen.write_text(backend_lock, encoding="utf-8")
        target = ("--upgrade", "--no-compile", "--target", str(backend))
        run(*install, *target, "-r", str(chosen))
    versions = installed_versions(wrap(Command(argv=(*pip, "list", "--format=freeze"), environ=environ)))
    reporter.done()
    return versions


def installed_versions(command: Command) -> dict[str, str]:
    """Return what a `pip list --format=freeze` names, package -> version.

    Raises:
        BuildEnvironmentError: pip failed or did not answer; an empty list would start another build.
    """
    listed = capture(command, timeout_seconds=300)
    if not listed.ok:
        raise BuildEnvironmentError(
            f"`{command}` failed: {listed.stderr.strip() or listed.exit}", hint="the same command again tries again"
        )
    return dict(sorted(line.split("==", 1) for line in listed.stdout.splitlines() if "==" in line))


def lock_parts(lock: str) -> tuple[tuple[str, str, tuple[str, ...]], ...]:
    """Return a lock in the order of its installation: name, requirements, and pip's options for them.

    First what has wheels, and nothing of that is built. Then the source distributions, built in this very environment:
    in an isolated one pip would fetch what they are built with, without a hash, and run it.

    >>> lock_parts("a==1 --hash=sha256:00\\n# no wheel for x: built from the source distribution there\\nb==2\\n")[1]
    ('sources', 'b==2\\n', ('--no-build-isolation',))
    """
    wheels: list[str] = []
    sources: list[str] = []
    is_source = False
    for line in re.sub(r"\\\n\s*", "", lock).splitlines():
        if line.startswith("#"):
            is_source = line.startswith("# no wheel for ")
        elif line.strip():
            (sources if is_source else wheels).append(f"{line}\n")
            is_source = False
    parts = (
        ("wheels", "".join(wheels), ("--only-binary", ":all:")),
        ("sources", "".join(sources), ("--no-build-isolation",)),
    )
    return tuple(part for part in parts if part[1])


def backend_lines(lock: str) -> str:
    """Return the lines of a lock that name scikit-build-core, hashes included; empty if it does not.

    >>> backend_lines("cmake==4.1 \\\\\\n  --hash=sha256:00\\nscikit-build-core==1.1 \\\\\\n  --hash=sha256:11\\n")
    'scikit-build-core==1.1 --hash=sha256:11\\n'
    """
    joined = re.sub(r"\\\n\s*", "", lock)
    kept = [line for line in joined.splitlines() if re.match(r"scikit[-_]build[-_]core\b", line)]
    return "".join(f"{line}\n" for line in kept)


@contextmanager
def _failures(log: Path) -> Iterator[None]:
    try:
        yield
    except CommandFailed as failure:
        text = "\n".join(failure.tail[-6:])
        if full := disk_full("\n".join(failure.tail), during="while the build environment is made"):
            raise full from failure
        if forbidden := forbidden_by_settings("\n".join(failure.tail), wanted="what the lock pins"):
            raise forbidden from failure
        raise BuildEnvironmentError(f"{failure}:\n{text}", hint=_hint(text, log)) from failure


def _hint(text: str, log: Path) -> str:
    if "THESE PACKAGES DO NOT MATCH THE HASHES" in text or "Hashes are required" in text:
        return "the index serves another file than the lock lists: trust neither; see `nox -s lock -- --check`"
    if "No matching distribution" in text or "Could not find a version" in text:
        return "check the network; with --offline, run once without it; otherwise see `nox -s lock -- --check`"
    return f"the whole output is in {log}"
