"""Does a lock resolve for a Mac? pip resolves it here, with the Mac's tags, and installs nothing."""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path

from mps_build.common.errors import BuildEnvironmentError
from mps_build.common.process import Command, capture
from mps_build.common.recipe.locks import Lock
from mps_build.common.wheels.pip_call import QUESTION, limited_pip

_NO_WHEEL = re.compile(r"# no wheel for ([^:\n]+):.*\n((?:.*\\\n)*.*\n)")


def split_lock(lock: str) -> tuple[str, tuple[str, ...]]:
    r"""Return the lock's lines that a Mac installs as wheels, and the packages it must build from source.

    >>> split_lock("a==1 \\\n    --hash=sha256:00\n# no wheel for macOS arm64: built\nb==2 \\\n    --hash=sha256:11\n")
    ('a==1 \\\n    --hash=sha256:00\n', ('b==2',))
    """
    built: list[str] = []

    def take(match: re.Match[str]) -> str:
        if "macOS arm64" not in match[1]:
            return match[2]
        built.append(match[2].split()[0])
        return ""

    return _NO_WHEEL.sub(take, lock if lock.endswith("\n") else f"{lock}\n"), tuple(built)


def mac_command(python: Path, *, requirements: Path, version: str, macos: str, scratch: Path) -> tuple[str, ...]:
    """Return pip's arguments: every file of the lock, by hash, for this Python on that macOS, and nothing kept."""
    free_threaded = version.endswith("t")
    plain = version.removesuffix("t").replace(".", "")
    major = macos.partition(".")[0]
    tags = ("--platform", f"macosx_{major}_0_arm64", "--python-version", version.removesuffix("t"))
    abis = ("--implementation", "cp", "--abi", f"cp{plain}{'t' * free_threaded}", "--abi", "abi3", "--abi", "none")
    quiet = ("--disable-pip-version-check", "--no-input", "-q")
    only = ("--no-deps", "--only-binary", ":all:", "--require-hashes", "--ignore-installed", "--target", str(scratch))
    return (
        *limited_pip(python, limits=QUESTION),
        "install",
        *quiet,
        "--dry-run",
        *only,
        *tags,
        *abis,
        "-r",
        str(requirements),
    )


def try_lock_for_mac(
    lock: Lock, *, python: Path, version: str, macos: str, scratch: Path, environ: Mapping[str, str]
) -> tuple[str, ...]:
    """Return the packages that a Mac must build from source; all others were found, with a hash of the lock.

    Raises:
        BuildEnvironmentError: one of its files is not to be had.
    """
    wheels, built = split_lock(lock.text)
    scratch.mkdir(parents=True, exist_ok=True)
    requirements = scratch / f"{lock.name}.txt"
    requirements.write_text(wheels, encoding="utf-8")
    argv = mac_command(python, requirements=requirements, version=version, macos=macos, scratch=scratch / "nothing")
    answer = capture(Command(argv=argv, environ=environ), timeout_seconds=300)
    if not answer.ok:
        lines = [line for line in answer.stderr.splitlines() if not line.startswith("WARNING")]
        text = "\n  ".join(lines[-4:]) or f"exit {answer.exit}"
        raise BuildEnvironmentError(
            f"{lock.name} does not resolve for macOS {macos} arm64:\n  {text}",
            hint="check the network; otherwise: nox -s dev -- lock --upgrade RECIPE",
        )
    return built
