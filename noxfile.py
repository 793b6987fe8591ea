"""The sessions a user calls: each installs one dependency group and runs one command.

Imports nothing of ours: nox does not put this folder on sys.path, and a session's
packages live in its own venv.
"""

from __future__ import annotations

import os
import re
import sys
from pathlib import Path

import nox

if sys.version_info < (3, 10):  # noqa: UP036  # an old pip installs a nox that still starts
    # Said before the first install: a session's venv has the Python that runs nox.
    print(
        "error: mps-build needs Python 3.10 or newer; this nox runs under Python {}.{}: "
        "python3.12 -m pip install nox, then python3.12 -m nox ...".format(*sys.version_info),
        file=sys.stderr,
    )
    sys.exit(2)

ROOT = Path(__file__).parent
PACKAGE = {
    "PYTHONPATH": str(ROOT / "scripts"),
    # A session's own environment hides the caller's, whose torch a bare `nox -s verify_mps` asks.
    **{f"MPS_BUILD_CALLER_{name}": os.environ.get(name, "") for name in ("PATH", "VIRTUAL_ENV", "CONDA_PREFIX")},
}
PYPROJECT = nox.project.load_toml(ROOT / "pyproject.toml")

nox.needs_version = ">=2025.2.9"
nox.options.default_venv_backend = "uv|virtualenv"
nox.options.reuse_venv = "yes"
nox.options.error_on_external_run = True
nox.options.sessions = ["lint", "typecheck", "tests"]


def _install(session: nox.Session, group: str) -> None:
    """Install one dependency group, once for each wording of it: a session with nothing to do starts at once."""
    requirements = nox.project.dependency_groups(PYPROJECT, group)
    stamp = Path(session.virtualenv.location) / "installed-requirements.txt"
    wanted = "\n".join(requirements)
    if not stamp.is_file() or stamp.read_text(encoding="utf-8") != wanted:
        session.install("-q", *requirements)
        stamp.write_text(wanted, encoding="utf-8")


def _command(session: nox.Session, group: str = "tool") -> None:
    """Run the command of the session's name where the caller stands, and pass its exit status on.

    nox makes every failure a 1; the status is a contract (README, "Exit codes"), so it
    leaves by `sys.exit`, which nox lets through. After Ctrl-C nox would kill it within half a second: too early to end
    a build's programs in order and to remove what was being fetched.
    """
    _install(session, group)
    with session.chdir(session.invoked_from):
        try:
            argv = ("python", "-m", "mps_build", session.name, *session.posargs)
            session.run(*argv, env=PACKAGE, interrupt_timeout=10.0, terminate_timeout=10.0)
        except nox.command.CommandFailed as failure:
            sys.exit(_status(failure))


def _asks(session: nox.Session, option: str) -> bool:
    """Return whether an option that needs more than the tool itself is given."""
    return any(word.partition("=")[0] == option for word in session.posargs)


def _status(failure: Exception) -> int:
    """Return the exit status of the command that failed, as a shell gives it; 1 where nox ran none.

    `CommandFailed.return_code` came with nox 2026.7; before, the status stands in the message alone
    (https://github.com/wntrblm/nox/blob/2025.02.09/nox/command.py).
    """
    code = getattr(failure, "return_code", None)
    if code is None and (said := re.fullmatch(r"Returned code (-?\d+)", str(failure))):
        code = int(said[1])
    return 1 if not code else 128 - code if code < 0 else code


# Task: build a wheel


@nox.session
def build_wheel(session: nox.Session) -> None:
    """Build a recipe into an audited wheel."""
    _command(session)


@nox.session
def build_companions(session: nox.Session) -> None:
    """Build torchvision and torchaudio for a torch that was built here."""
    _command(session)


@nox.session
def rehearse(session: nox.Session) -> None:
    """Try a macOS recipe on Linux: patches, lock, configure, C++."""
    _command(session)


@nox.session
def check_mm(session: nox.Session) -> None:
    """Check Objective-C++ of MPS on any system: selectors, types, enums, version guards."""
    _command(session, "check_mm")


@nox.session
def shell(session: nox.Session) -> None:
    """Open a shell, or run one command, in the exact environment of a build."""
    _command(session)


@nox.session
def lock(session: nox.Session) -> None:
    """Pin the versions and hashes of each recipe's build requirements."""
    _command(session, "lock")


@nox.session
def matrix(session: nox.Session) -> None:
    """List the recipes and their Pythons as JSON, for a workflow."""
    _command(session)


@nox.session
def refresh_patches(session: nox.Session) -> None:
    """Show which patches apply to a tree or a tag, are upstream already, or conflict."""
    _command(session)


@nox.session
def build_report(session: nox.Session) -> None:
    """Show where a build's time went, its critical path, and what would save most."""
    _command(session)


# Task: inspect a wheel without running it on a Mac


@nox.session
def audit_wheel(session: nox.Session) -> None:
    """Check what a wheel, a requirement or an installed torch contains."""
    _command(session)


@nox.session
def verify_kernels(session: nox.Session) -> None:
    """Run a wheel's Metal kernels on this machine, without a Mac, and compare their results."""
    _command(session, "kernels")


@nox.session
def op_coverage(session: nox.Session) -> None:
    """List which operators MPS runs itself, through a composite, or not."""
    _command(session)


@nox.session
def compare(session: nox.Session) -> None:
    """Compare two wheels, or two records."""
    _command(session, "kernels" if _asks(session, "--kernels") else "tool")


# Task: verify a torch on a device


@nox.session
def simulate(session: nox.Session) -> None:
    """Run a program with an mps device on Linux, over a software Metal."""
    _command(session, "simulate")


@nox.session
def verify_mps(session: nox.Session) -> None:
    """Test whether MPS on this Mac gives right answers."""
    _command(session)


@nox.session
def verify_training(session: nox.Session) -> None:
    """Test whether Accelerate and Transformers train as their pages promise."""
    _command(session)


@nox.session
def benchmark_mps(session: nox.Session) -> None:
    """Time training and inference on the device against the CPU."""
    _command(session, "picture")


@nox.session
def bisect_mps(session: nox.Session) -> None:
    """Find the version, and the commit, that changed an answer."""
    _command(session, "kernels" if _asks(session, "--op") else "tool")


@nox.session
def repro(session: nox.Session) -> None:
    """Write one failure of a record as a script of its own, and as an issue's text."""
    _command(session)


# Task: understand a host or a failure


@nox.session
def doctor(session: nox.Session) -> None:
    """Check this host, or a recorded one, against one recipe or all."""
    _command(session)


@nox.session
def triage(session: nox.Session) -> None:
    """Find the known cause of a failed log, and its fix."""
    _command(session)


@nox.session
def adopt(session: nox.Session) -> None:
    """Check a recording that a user sent, and file it among the tests."""
    _command(session)


@nox.session
def support(session: nox.Session) -> None:
    """Pack recording, receipts, logs and versions into one scrubbed file for an issue."""
    _command(session)


@nox.session
def clean(session: nox.Session) -> None:
    """Show disk usage of the work folder and the cache, and remove what is named."""
    _command(session)


# Task: run a fleet and publish


@nox.session
def plan_fleet(session: nox.Session) -> None:
    """Estimate how long a number of Macs takes to build and test."""
    _command(session)


@nox.session
def publish_index(session: nox.Session) -> None:
    """Write a static package index of wheels, with hashes, receipts and attestations."""
    _command(session)


@nox.session
def verify_provenance(session: nox.Session) -> None:
    """Check a downloaded wheel against its receipt, its attestation and the recipe's pins."""
    _command(session, "provenance")


@nox.session
def ci(session: nox.Session) -> None:
    """Answer what a workflow asks beside the sessions: trust, refs, outputs, upstream's commit, issues."""
    _command(session)


# Task: keep this repository


@nox.session
def regenerate(session: nox.Session) -> None:
    """Write every generated file and table of this repository."""
    _command(session)


@nox.session
def completion(session: nox.Session) -> None:
    """Print a completion script for your shell."""
    _command(session)


@nox.session
def workflows(session: nox.Session) -> None:
    """The workflows: GitHub's schemas, zizmor's auditor, and the shell scripts of runner/ by shellcheck."""
    _install(session, "workflows")
    files = sorted(map(str, (ROOT / ".github" / "workflows").glob("*.yml")))
    actions = sorted(map(str, (ROOT / ".github" / "actions").glob("*/action.yml")))
    session.run("check-jsonschema", "--builtin-schema", "vendor.github-workflows", *files)
    session.run("check-jsonschema", "--builtin-schema", "vendor.github-actions", *actions)
    session.run("check-jsonschema", "--builtin-schema", "vendor.dependabot", str(ROOT / ".github" / "dependabot.yml"))
    session.run("zizmor", "--offline", "--persona", "auditor", "--no-ignores", "--no-progress", str(ROOT / ".github"))
    session.run("shellcheck", *sorted(map(str, (ROOT / "runner").rglob("*.sh"))))


@nox.session
def benchmark(session: nox.Session) -> None:
    """Measure one of benchmarks/ (audit, driver, ...) for benchmarks/results.json; `readme` writes the page of all."""
    names = sorted(path.stem for path in (ROOT / "benchmarks").glob("*.py"))
    names = [name for name in names if name not in ("record", "two_hosts", "kernel_faults")]
    if not session.posargs or session.posargs[0] not in names:
        session.error(f"say which: {', '.join(names)}")
    _install(session, "benchmark")
    session.run("python", str(ROOT / "benchmarks" / f"{session.posargs[0]}.py"), *session.posargs[1:], env=PACKAGE)


@nox.session
def fuzz(session: nox.Session) -> None:
    """Mutated wheels, logs, recordings, records, recipes and receipts, 20,000 of each: every one read or refused."""
    _install(session, "tests")
    session.run("python", str(ROOT / "benchmarks" / "fuzz.py"), *session.posargs, env=PACKAGE)


@nox.session
def lint(session: nox.Session) -> None:
    """Format, lint rules and import contracts."""
    _install(session, "lint")
    session.run("ruff", "format", "--check", ".")
    session.run("ruff", "check", ".")
    session.run("lint-imports", "--no-cache", env={"PYTHONPATH": str(ROOT / "scripts")})


@nox.session
def typecheck(session: nox.Session) -> None:
    """mypy --strict over the sources, the noxfile, the benchmarks and the tests."""
    _install(session, "typecheck")
    benchmarks = sorted(map(str, Path("benchmarks").glob("*.py")))  # benchmarks/device runs in the venv of a torch
    workers = ("--num-workers", str(min(8, os.cpu_count() or 1)))
    session.run("mypy", *workers, "noxfile.py", "scripts", *benchmarks, "tests/tooling")


@nox.session
def tests(session: nox.Session) -> None:
    """This repository's own tests; arguments go to pytest."""
    _install(session, "tests")
    # One worker more than cores: many tests wait for a process of theirs. Long tests at the end are shared out again.
    workers = ("-n", str((os.cpu_count() or 2) + 1), "--dist", "worksteal")
    # Each worker would have Hypothesis's plugin read all our modules for constants; its decorators work without it.
    chosen = ("-p", "no:hypothesispytest", "-m", "not slow")
    # Bytecode beside the sources: hundreds of tests start a process, which then compiles nothing anew.
    session.run("pytest", *workers, *chosen, *session.posargs, env={"PYTHONDONTWRITEBYTECODE": None})


@nox.session
def tests_slow(session: nox.Session) -> None:
    """The tests that need minutes, a network or a compiler."""
    _install(session, "tests_slow")
    session.run("pytest", "-m", "slow or zig", *session.posargs, env={"MPS_BUILD_TESTS_NEED_ZIG": "1"})


@nox.session(venv_backend="virtualenv")  # pip may have the CPU build of torch on disk; uv does not know
def sensitivity(session: nox.Session) -> None:
    """Faults planted in the device suite, on the CPU with one torch: each must be noticed; arguments go to pytest."""
    _install(session, "sensitivity")
    # The second device needs a process of its own; arguments are meant for the first folder.
    for name in ("sensitivity",) if session.posargs else ("second_device", "sensitivity"):
        folder = ROOT / "tests" / name
        suite = ("pytest", "-c", str(ROOT / "tests" / "device" / "pytest.ini"), "--rootdir", str(folder), str(folder))
        session.run(*suite, *session.posargs, env={"PYTHONDONTWRITEBYTECODE": "1"})


if os.environ.get("MPS_BUILD_NO_UV"):
    nox.options.default_venv_backend = "virtualenv"
