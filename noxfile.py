"""Build PyTorch for Apple silicon, and verify it: `nox -s NAME -- OPTIONS`; `nox -s NAME -- --help` says more.

The last five sessions keep this repository; `nox` alone runs the first three of these.
"""

# Each session installs one dependency group and runs one command. Nothing of ours is imported: a session's packages
# live in its own venv, and the commands are read from their modules' text.

from __future__ import annotations

import argparse
import ast
import os
import re
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import NamedTuple

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
CORES = ROOT / "scripts" / "mps_build" / "common" / "cores.py"
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
    a build's programs in order and to remove what was being fetched. A program of the user's has the time it needs.
    """
    _install(session, group)
    patience = None if session.name in ("simulate", "shell") else 10.0
    with session.chdir(session.invoked_from):
        try:
            argv = ("python", "-m", "mps_build", session.name, *session.posargs)
            session.run(*argv, env=PACKAGE, interrupt_timeout=patience, terminate_timeout=patience)
        except nox.command.CommandFailed as failure:
            sys.exit(_status(failure))


def _usable_cores(session: nox.Session) -> int:
    """Return the cores that this process may use, by affinity and quota, as the program that knows says."""
    return int(session.run("python", str(CORES), silent=True, log=False) or 1)


def _status(failure: Exception) -> int:
    """Return the exit status of the command that failed, as a shell gives it; 1 where nox ran none.

    `CommandFailed.return_code` came with nox 2026.7; before, the status stands in the message alone
    (https://github.com/wntrblm/nox/blob/2025.02.09/nox/command.py).
    """
    code = getattr(failure, "return_code", None)
    if code is None and (said := re.fullmatch(r"Returned code (-?\d+)", str(failure))):
        code = int(said[1])
    return 1 if not code else 128 - code if code < 0 else code


class _Command(NamedTuple):
    """What a command's module states: its summary, its task, and which group it needs, always or with an option."""

    name: str
    summary: str
    task: tuple[str, int]
    group: str
    groups_of_options: dict[str, str]


def _read_command(path: Path) -> _Command:
    tree = ast.parse(path.read_text(encoding="utf-8"))
    stated = {
        node.targets[0].id: ast.literal_eval(node.value)
        for node in tree.body
        if isinstance(node, ast.Assign)
        and isinstance(node.targets[0], ast.Name)
        and node.targets[0].id in ("TASK", "EXTRA", "EXTRA_OPTIONS")
    }
    return _Command(
        name=path.stem,
        summary=(ast.get_docstring(tree) or "").partition("\n")[0],
        task=stated["TASK"],
        group=stated.get("EXTRA", "tool"),
        groups_of_options=stated.get("EXTRA_OPTIONS", {}),
    )


def _session_of(command: _Command) -> Callable[[nox.Session], None]:
    def run(session: nox.Session) -> None:
        given = {word.partition("=")[0] for word in session.posargs}
        groups = [group for option, group in command.groups_of_options.items() if option in given]
        _command(session, groups[0] if groups else command.group)

    run.__doc__ = command.summary
    return run


# A command is a module of commands/, of commands/dev/ if only maintainers need it; nothing else names it. `nox -l`
# shows them by task, `dev` those of maintainers.
_ORDER = ("build", "verify", "inspection", "host", "publish", "without_a_mac")
_FOLDERS = (ROOT / "scripts" / "mps_build" / "commands", ROOT / "scripts" / "mps_build" / "commands" / "dev")
_COMMANDS = sorted(
    (_read_command(path) for folder in _FOLDERS for path in folder.glob("[!_]*.py")), key=lambda command: command.task
)
for _task in _ORDER:
    for _each in _COMMANDS:
        if _each.task[0] == _task:
            nox.session(name=_each.name)(_session_of(_each))


# Sessions that keep this repository.
_NAMED = sys.argv[sys.argv.index("--") + 1 :] if "--" in sys.argv else []


@nox.session
def lint(session: nox.Session) -> None:
    """Format, lint rules, import contracts, spelling, and words that have a standard term."""
    _install(session, "lint")
    session.run("ruff", "format", "--check", ".")
    session.run("ruff", "check", ".")
    session.run("lint-imports", "--no-cache", env={"PYTHONPATH": str(ROOT / "scripts")})
    # `code` in backquotes is another program's word; a part of an identifier is a word too.
    ignored = r"`[^`]*`|Draft\d+|ascii_letters|asked CMake"
    # The specimens of Apple's tools have a vocabulary of their own, the logs of other tools theirs.
    skipped = "*.json,*.svg,*.png,*.html,*.cpp,*.mm,*.h,*.txt,*.log,*.pyc,"
    skipped += "glossary.md,parity_2.6.0.md,tests/recorded/specimens"
    words = ("-D", "docs/contributing/words.txt", "--regex", "[A-Z]?[a-z]+", "--check-filenames")
    places = ("docs", "scripts", "benchmarks", "tests", "noxfile.py", *sorted(map(str, Path().glob("*.md"))))
    session.run("codespell", "-D", "-", "--ignore-regex", ignored, "--skip", skipped, "docs", *places[5:])
    session.run("codespell", *words, "--ignore-regex", ignored, "--skip", f"{skipped},CHANGELOG.md", *places)


@nox.session
def typecheck(session: nox.Session) -> None:
    """mypy --strict over the sources, the noxfile, the benchmarks and the tests."""
    _install(session, "typecheck")
    # benchmarks/device runs in the venv of a torch, benchmarks/bugs in a wheel's own Python
    benchmarks = [*map(str, _benchmarks().values()), "benchmarks/shared"]
    workers = ("--num-workers", str(min(8, _usable_cores(session))))
    session.run("mypy", *workers, "noxfile.py", "scripts", *benchmarks, "tests/tooling")


def _benchmarks() -> dict[str, Path]:
    """Return the programs of benchmarks/ by their names, whichever folder they lie in."""
    found = sorted([*(ROOT / "benchmarks").glob("*.py"), *(ROOT / "benchmarks").glob("*/*.py")])
    return {path.stem: path for path in found if path.parent.name not in ("shared", "device", "bugs")}


def _measure(session: nox.Session, name: str, *arguments: str) -> None:
    folders = (ROOT / "tests" / "tooling" / "fakes", ROOT / "benchmarks")
    path = os.pathsep.join([PACKAGE["PYTHONPATH"], *map(str, folders)])
    session.run("python", str(_benchmarks()[name]), *arguments, env={**PACKAGE, "PYTHONPATH": path})


def _tests_slow(session: nox.Session) -> None:
    """The tests that need minutes, a network or a compiler."""
    _install(session, "tests_slow")
    session.run("pytest", "-m", "slow or zig", *session.posargs, env={"MPS_BUILD_TESTS_NEED_ZIG": "1"})


def _tests_pages(session: nox.Session) -> None:
    """Every page at its real size in Chromium: nothing cut, no scrolling sideways, contrast; needs a browser."""
    _install(session, "tests_pages")
    session.run("pytest", "-m", "browser", *session.posargs, env={"MPS_BUILD_TESTS_NEED_BROWSER": "1"})


def _asks_for_torch(path: Path) -> bool:
    """True of a file of tests that takes a Python with torch from the environment, and skips some without."""
    asks = r'^\w+ = os\.environ\.get\("MPS_BUILD_T(?:EST_TORCH|ORCH_PYTHON)"'
    return bool(re.search(asks, path.read_text(encoding="utf-8"), re.MULTILINE))


def _tests_torch(session: nox.Session) -> None:
    """Tests that need torch on the CPU: scripts of `repro`, faults of the suite, the judge; arguments go to pytest.

    Without arguments docs/verify/repro_scripts.md is written anew: how long each script is, and how it ended.
    The scripts of kernels fetch a wheel, and take ten minutes: `-m "not slow"` leaves them out.
    """
    _install(session, "tests_torch")
    python = str(Path(session.virtualenv.location) / "bin" / "python")
    files = [str(path) for path in sorted((ROOT / "tests" / "tooling").rglob("test_*.py")) if _asks_for_torch(path)]
    rows = session.create_tmp()
    torch = dict.fromkeys(("MPS_BUILD_TEST_TORCH", "MPS_BUILD_TORCH_PYTHON"), python)
    session.run("pytest", *files, *session.posargs, env={**torch, "MPS_BUILD_REPRO_ROWS": rows})
    if not session.posargs:
        _measure(session, "repro_scripts", rows)


def _sensitivity(session: nox.Session) -> None:
    """Faults injected into the device suite, on the CPU: each must be noticed; arguments go to pytest: FILE -k NAME."""
    _install(session, "sensitivity")
    tests = ROOT / "tests"
    files = [word for word in session.posargs if Path(word.partition("::")[0]).exists()]
    # The second device needs a process of its own; arguments are meant for the first folder.
    for name in ("sensitivity",) if session.posargs else ("second_device", "sensitivity"):
        suite = ("pytest", "-c", str(tests / "sensitivity" / "pytest.ini"), "--rootdir", str(tests / name))
        folder = () if files else (str(tests / name),)
        session.run(*suite, *folder, *session.posargs, env={"PYTHONDONTWRITEBYTECODE": "1"})


def _libraries(session: nox.Session) -> None:
    """Twelve libraries from PyPI on the simulated device; needs a network, and fetches 1 GB of packages."""
    _install(session, "tests")
    session.run("pytest", str(ROOT / "tests" / "libraries"), *session.posargs)


# What `tests -- --tier NAME` runs.
_TIERS = {
    "slow": _tests_slow,
    "pages": _tests_pages,
    "torch": _tests_torch,
    "sensitivity": _sensitivity,
    "libraries": _libraries,
}


def _tier(words: list[str]) -> tuple[str | None, list[str]]:
    """Return what follows `--tier`, None where it is not there, and the other words: those behind a further `--`."""
    parser = argparse.ArgumentParser(add_help=False, allow_abbrev=False)
    parser.add_argument("--tier", nargs="?", const="")
    found, others = parser.parse_known_args(words)
    return found.tier, others[1:] if others[:1] == ["--"] else others


# Read as the noxfile is: a word of another session's program is none of ours.
_CHOSEN = _tier(_NAMED)[0] if "tests" in sys.argv else None


@nox.session(venv_backend=None if _CHOSEN is None else "none")
def tests(session: nox.Session) -> None:
    """This repository's own tests; arguments go to pytest. `--tier slow|pages|torch|sensitivity|libraries`: others."""
    tier, others = _tier(list(session.posargs))
    if tier is not None:
        _hand_on(session, _TIERS, tier, others)
        return
    _install(session, "tests")
    # No more workers than cores: a test's own processes compute while it waits. Long tests at the end are shared out
    # again.
    workers = ("-n", str(_usable_cores(session)), "--dist", "worksteal")
    # Each worker would have Hypothesis's plugin read all our modules for constants; its decorators work without it.
    chosen = ("-p", "no:hypothesispytest", "-m", "not slow")
    # Bytecode beside the sources: hundreds of tests start a process, which then compiles nothing anew.
    # What a caller's tools may have set (nox itself: UV_PYTHON), set to harm: tests/tooling/conftest.py removes it.
    harm = {"UV_PYTHON": "3.9", "PIP_REQUIRE_VIRTUALENV": "1", "GIT_DIR": os.devnull, "CONDA_PREFIX": os.devnull}
    session.run("pytest", *workers, *chosen, *session.posargs, env={**harm, "PYTHONDONTWRITEBYTECODE": None})


@nox.session
def benchmark(session: nox.Session) -> None:
    """Measure one of benchmarks/ (audit, driver, ...) for benchmarks/results.json; `readme` writes the page of all."""
    names = _benchmarks()
    if not session.posargs or session.posargs[0] not in names:
        session.error(f"say which: {', '.join(sorted(names))}")
    _install(session, "benchmark")
    _measure(session, *session.posargs)


def _workflows(session: nox.Session) -> None:
    """The workflows: GitHub's schemas, zizmor's auditor; recipes by their schema, shell scripts by shellcheck."""
    _install(session, "workflows")
    files = sorted(map(str, (ROOT / ".github" / "workflows").glob("*.yml")))
    action = ROOT / "simulate" / "action.yml"  # for other repositories
    actions = sorted(map(str, (*(ROOT / ".github" / "actions").glob("*/action.yml"), action)))
    session.run("check-jsonschema", "--builtin-schema", "vendor.github-workflows", *files)
    session.run("check-jsonschema", "--builtin-schema", "vendor.github-actions", *actions)
    session.run("check-jsonschema", "--builtin-schema", "vendor.dependabot", str(ROOT / ".github" / "dependabot.yml"))
    recipes = sorted(map(str, (ROOT / "build_recipes").glob("*.yaml")))
    session.run("check-jsonschema", "--schemafile", str(ROOT / "schemas" / "recipe.schema.json"), *recipes)
    audited = (str(ROOT / ".github"), str(action))
    session.run("zizmor", "--offline", "--persona", "auditor", "--no-ignores", "--no-progress", *audited)
    scripts = (*(ROOT / "runner").rglob("*.sh"), *action.parent.glob("*.sh"))
    session.run("shellcheck", *sorted(map(str, scripts)))


def _fuzz(session: nox.Session) -> None:
    """Mutated wheels, logs, recordings, records, recipes and receipts, 20,000 of each: every one read or refused."""
    _install(session, "tests")
    _measure(session, "fuzz", *session.posargs)


# What `dev -- NAME` runs.
_DEV = {command.name: _session_of(command) for command in _COMMANDS if command.task[0] not in _ORDER}
_DEV |= {"workflows": _workflows, "fuzz": _fuzz}


@nox.session(venv_backend="none")
def dev(session: nox.Session) -> None:
    """What this repository's maintainers need beside it: lists it; `-- NAME ARGUMENTS` runs one."""
    if session.posargs:
        _hand_on(session, _DEV, session.posargs[0], session.posargs[1:])
        return
    for name, run in _DEV.items():
        print(f"nox -s dev -- {name:<16} {(run.__doc__ or '').partition(chr(10))[0]}")


def _hand_on(
    session: nox.Session, offered: Mapping[str, Callable[[nox.Session], None]], name: str, arguments: list[str]
) -> None:
    """Run what is named as a session of its own, with its own environment."""
    if name not in offered:
        print(f"error: {name!r} is none of {', '.join(offered)}", file=sys.stderr)
        sys.exit(2)
    session.notify(_hidden(offered[name], name), arguments)


def _hidden(run: Callable[[nox.Session], None], name: str) -> str:
    """Return the name of a session that `nox -l` does not show: that of its function, or of its command."""
    return name if run.__name__ == "run" else run.__name__.removeprefix("_")


# nox lists every session that there is, so these are one only where the command line names them.
for _offered, _chosen in ((_TIERS, _CHOSEN), (_DEV, "".join(_NAMED[:1]))):
    if _chosen is not None and _chosen in _offered:
        _run = _offered[_chosen]
        # pip may have the CPU build of torch on disk; uv does not know.
        _backend = "virtualenv" if _run in (_tests_torch, _sensitivity) else None
        nox.session(name=_hidden(_run, _chosen), venv_backend=_backend, default=False)(_run)


def _say_where(now: str) -> Callable[[nox.Session], None]:
    def run(session: nox.Session) -> None:
        print(f"error: this is now: {' '.join(['nox -s', now, *session.posargs])}", file=sys.stderr)
        sys.exit(2)

    return run


# Names of the last release.
_GONE = {_hidden(run, name): f"tests -- --tier {name}" for name, run in _TIERS.items()}
_GONE |= {name: f"dev -- {name}" for name in _DEV}
for _old in _GONE.keys() & set(sys.argv[: sys.argv.index("--")] if "--" in sys.argv else sys.argv):
    nox.session(name=_old, venv_backend="none", default=False)(_say_where(_GONE[_old]))


if os.environ.get("MPS_BUILD_NO_UV"):
    nox.options.default_venv_backend = "virtualenv"
