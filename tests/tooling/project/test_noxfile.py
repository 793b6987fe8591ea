"""noxfile.py under each nox and each Python that may run it: statuses pass, an old Python is named in a line."""

from __future__ import annotations

import contextlib
import importlib.util
import os
import re
import shutil
import subprocess
import sys
import types
from collections.abc import Callable
from pathlib import Path

import pytest
from mps_build.commands.shared.catalogue import COMMANDS, MAINTAINERS
from mps_build.commands.shared.parser import module_of

ROOT = Path(__file__).parents[3]
NOXFILE = ROOT / "noxfile.py"
_AT_IMPORT = frozenset(os.environ)


class _OldCommandFailed(Exception):
    """nox before 2026.7: the status stands in the text alone."""


class _NewCommandFailed(Exception):
    def __init__(self, reason: str, *, return_code: int | None = None) -> None:
        super().__init__(reason)
        self.return_code = return_code


def _load(*arguments: str) -> types.ModuleType:
    """Return the noxfile as `nox ARGUMENTS` reads it, with a fake nox: its sessions are functions in `sessions`."""
    nox = types.ModuleType("nox")
    sessions: dict[str, Callable[..., None]] = {}

    def session(function: Callable[..., None] | None = None, *, name: str = "", **options: object) -> object:
        def register(inner: Callable[..., None]) -> Callable[..., None]:
            sessions[name or inner.__name__] = inner
            return inner

        return register(function) if function else register

    nox.__dict__.update(
        project=types.SimpleNamespace(load_toml=lambda path: {}),
        options=types.SimpleNamespace(),
        session=session,
        command=types.SimpleNamespace(CommandFailed=_OldCommandFailed),
    )
    spec = importlib.util.spec_from_file_location("noxfile_under_test", NOXFILE)
    assert spec and spec.loader
    module = importlib.util.module_from_spec(spec)
    with pytest.MonkeyPatch.context() as patched:
        patched.setitem(sys.modules, "nox", nox)
        patched.setattr(sys, "argv", ["nox", *arguments])
        spec.loader.exec_module(module)
    module.__dict__["sessions"] = sessions
    return module


@pytest.fixture(name="noxfile", scope="module")
def _noxfile() -> types.ModuleType:
    return _load()


@pytest.mark.parametrize(
    ("failure", "status"),
    [
        (_OldCommandFailed("Returned code 12"), 12),
        (_OldCommandFailed("Returned code -9"), 137),
        (_OldCommandFailed("Program python not found"), 1),
        (_OldCommandFailed("Returned code 0x7"), 1),
        (_OldCommandFailed(), 1),
        (_NewCommandFailed("Returned code 7", return_code=7), 7),
        (_NewCommandFailed("Returned code -15", return_code=-15), 143),
        (_NewCommandFailed("Program python not found"), 1),
    ],
)
def test_the_status_of_a_command_is_read_from_every_nox(
    noxfile: types.ModuleType, failure: Exception, status: int
) -> None:
    assert noxfile._status(failure) == status


def test_every_command_of_a_user_is_a_session_and_says_what_its_module_says(noxfile: types.ModuleType) -> None:
    wanted = {name: f"{text[0].upper()}{text[1:]}." for name, text in COMMANDS.items() if name not in MAINTAINERS}

    said = {name: session.__doc__ for name, session in noxfile.sessions.items() if name in COMMANDS}

    assert said == wanted
    assert said == {name: (module_of(name).__doc__ or "").splitlines()[0] for name in wanted}


def test_the_list_begins_with_what_a_user_can_do_and_ends_with_five_of_the_repository(
    noxfile: types.ModuleType,
) -> None:
    names = list(noxfile.sessions)

    assert names[:-5] == [name for name in COMMANDS if name not in MAINTAINERS]
    assert names[-5:] == ["lint", "typecheck", "tests", "benchmark", "dev"]
    assert len(names[:-5]) == 21 and names[-9:-5] == ["simulate", "verify_kernels", "rehearse", "check_mm"]


def _ask(name: str, *words: str) -> list[tuple[str, list[str]]]:
    """Return what a session hands on to another when nox is called so."""
    handed: list[tuple[str, list[str]]] = []
    noxfile = _load("-s", name, "--", *words)

    def notify(other: str, posargs: list[str]) -> None:
        assert other in noxfile.sessions, "nox knows no such session"
        handed.append((other, posargs))

    noxfile.sessions[name](types.SimpleNamespace(posargs=list(words), notify=notify))
    return handed


def test_what_maintainers_need_is_behind_dev_with_its_arguments() -> None:
    for name in MAINTAINERS:
        assert _ask("dev", name, "--check", "v2.6.0") == [(name, ["--check", "v2.6.0"])]
    assert _ask("dev", "workflows") == [("workflows", [])]


def test_dev_alone_lists_every_name(noxfile: types.ModuleType, capsys: pytest.CaptureFixture[str]) -> None:
    noxfile.sessions["dev"](types.SimpleNamespace(posargs=[]))

    shown = re.findall(r"nox -s dev -- (\w+) +\S", capsys.readouterr().out)
    assert shown == [*(name for name in COMMANDS if name in MAINTAINERS), "workflows", "fuzz"]


@pytest.mark.parametrize(
    ("words", "session", "arguments"),
    [
        (["--tier", "slow"], "tests_slow", []),
        (["-k", "slow", "--tier=torch", "-x"], "tests_torch", ["-k", "slow", "-x"]),
        (["--tier", "pages", "tests/tooling"], "tests_pages", ["tests/tooling"]),
        (["--tier", "sensitivity"], "sensitivity", []),
        (["--tier", "sensitivity", "--", "FILE", "-k", "x"], "sensitivity", ["FILE", "-k", "x"]),
    ],
)
def test_a_tier_of_the_tests_is_a_session_with_packages_of_its_own(
    words: list[str], session: str, arguments: list[str]
) -> None:
    assert _ask("tests", *words) == [(session, arguments)]
    assert f"\n{session} = [" in (ROOT / "pyproject.toml").read_text(encoding="utf-8")


@pytest.mark.parametrize(
    ("posargs", "runs"),
    [
        ([], [["second_device"], ["sensitivity"]]),
        (["-k", "x"], [["sensitivity", "-k", "x"]]),
        (["tests/sensitivity/suite/test_budget.py::test_x", "-x"], [["test_budget.py::test_x", "-x"]]),
    ],
)
def test_the_tier_of_sensitivity_runs_the_file_that_is_named(
    noxfile: types.ModuleType, monkeypatch: pytest.MonkeyPatch, posargs: list[str], runs: list[list[str]]
) -> None:
    ran: list[list[str]] = []
    monkeypatch.chdir(ROOT)
    monkeypatch.setattr(noxfile, "_install", lambda session, group: None)

    def run(*argv: str, **_: object) -> None:
        assert argv[:2] == ("pytest", "-c") and Path(argv[2]).is_file()
        ran.append([word.rpartition("/")[2] for word in argv[5:]])

    noxfile._sensitivity(types.SimpleNamespace(run=run, posargs=posargs))

    assert ran == runs


def test_a_word_of_a_users_program_is_no_tier() -> None:
    assert _load("-s", "shell", "--", "v2.6.0", "--", "tool", "--tier")._CHOSEN is None


def test_the_tier_of_torch_runs_each_file_that_skips_without_one(noxfile: types.ModuleType) -> None:
    texts = {path: path.read_text(encoding="utf-8") for path in (ROOT / "tests" / "tooling").rglob("test_*.py")}
    skipping = {path for path, text in texts.items() if re.search(r"skipif\(not (PYTHON|TORCH)\b", text)}

    assert len(skipping) >= 5
    assert {path.name for path in skipping if not noxfile._asks_for_torch(path)} == set()


@pytest.mark.parametrize(("name", "word"), [("dev", "lokc"), ("tests", "--tier=slwo"), ("tests", "--tier")])
def test_a_name_that_is_not_there_is_answered_with_those_that_are(
    name: str, word: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit) as ended:
        _ask(name, word)

    assert ended.value.code == 2
    assert "is none of" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("old", "now"),
    [
        ("lock", "nox -s dev -- lock v2.6.0"),
        ("fuzz", "nox -s dev -- fuzz v2.6.0"),
        ("tests_slow", "nox -s tests -- --tier slow v2.6.0"),
        ("sensitivity", "nox -s tests -- --tier sensitivity v2.6.0"),
    ],
)
def test_a_session_of_the_last_release_is_answered_with_the_new_command(
    old: str, now: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit) as ended:
        _load("-s", old, "--", "v2.6.0").sessions[old](types.SimpleNamespace(posargs=["v2.6.0"]))

    assert ended.value.code == 2
    assert capsys.readouterr().err == f"error: this is now: {now}\n"


def test_there_are_no_more_workers_than_usable_cores(
    noxfile: types.ModuleType, monkeypatch: pytest.MonkeyPatch
) -> None:
    ran: list[tuple[str, ...]] = []

    def run(*argv: str, **_: object) -> str:
        ran.append(argv)
        return "3\n"

    monkeypatch.setattr(noxfile, "_install", lambda session, group: None)
    noxfile.sessions["tests"](types.SimpleNamespace(run=run, posargs=[]))

    (_, program), (_, *options) = ran
    assert Path(program).name == "cores.py" and Path(program).is_file()
    assert options[options.index("-n") + 1] == "3"


@pytest.mark.parametrize(
    ("command", "arguments", "group"),
    [
        ("doctor", [], "tool"),
        ("verify_kernels", [], "kernels"),
        ("compare", ["a.whl", "b.whl"], "tool"),
        ("compare", ["a.whl", "b.whl", "--kernels"], "kernels"),
        ("bisect_mps", ["--op=aten.add"], "kernels"),
        ("bisect_mps", ["--op=aten.add", "--simulated"], "simulate"),
        ("benchmark_mps", [], "png"),
        ("check_mm", [], "check_mm"),
        ("verify_provenance", [], "provenance"),
    ],
)
def test_a_session_installs_what_its_command_needs(
    noxfile: types.ModuleType, monkeypatch: pytest.MonkeyPatch, command: str, arguments: list[str], group: str
) -> None:
    installed: list[str] = []
    monkeypatch.setattr(noxfile, "_command", lambda session, group: installed.append(group))

    noxfile.sessions[command](types.SimpleNamespace(name=command, posargs=arguments))

    assert installed == [group]
    assert f"\n{group} = [" in (ROOT / "pyproject.toml").read_text(encoding="utf-8")


@pytest.mark.parametrize(("name", "group"), [("lock", "lock"), ("completion", "completion"), ("matrix", "tool")])
def test_dev_installs_what_is_named_needs(monkeypatch: pytest.MonkeyPatch, name: str, group: str) -> None:
    noxfile = _load("-s", "dev", "--", name)
    installed: list[str] = []
    monkeypatch.setattr(noxfile, "_command", lambda session, group: installed.append(group))

    noxfile.sessions[name](types.SimpleNamespace(name=name, posargs=[]))

    assert installed == [group]


def test_a_command_has_the_time_to_end_in_order(
    noxfile: types.ModuleType, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """Its programs have 3 seconds to end, and 3 more where they must be killed; nox gives half a second by itself."""
    given: dict[str, object] = {}
    session = types.SimpleNamespace(
        name="doctor",
        posargs=[],
        invoked_from=tmp_path,
        chdir=lambda folder: contextlib.nullcontext(),
        run=lambda *argv, **options: given.update(options),
    )
    monkeypatch.setattr(noxfile, "_install", lambda session, group: None)

    noxfile.sessions["doctor"](session)

    assert given["interrupt_timeout"] == given["terminate_timeout"] == 10.0


def _old_python(version: str) -> str:
    """Return a Python older than ours that can make venvs, of pyenv or PATH."""
    pyenv = sorted((Path.home() / ".pyenv" / "versions").glob(f"{version}.*/bin/python"))
    found = [str(path) for path in pyenv] + [path for path in [shutil.which(f"python{version}")] if path]
    for python in found:
        if subprocess.run([python, "-c", "import venv"], capture_output=True, check=False).returncode == 0:
            return python
    pytest.skip(f"no Python {version} here")


@pytest.mark.parametrize("version", ["3.8", "3.9"])
def test_an_older_python_hears_in_one_line_which_one_it_takes(version: str, tmp_path: Path) -> None:
    (tmp_path / "nox.py").write_text("")  # a nox that offers nothing: the check must come first
    script = f"import runpy; runpy.run_path({str(NOXFILE)!r})"
    environ = {"PATH": os.environ["PATH"], "PYTHONPATH": str(tmp_path)}

    ran = subprocess.run([_old_python(version), "-c", script], env=environ, capture_output=True, text=True, check=False)

    assert ran.returncode == 2
    assert ran.stderr.count("\n") == 1
    assert re.match(rf"error: mps-build needs Python 3\.10 or newer; this nox runs under Python {version}:", ran.stderr)


def _nox(folder: Path, python: str, requirement: str) -> Path:
    """Return a nox in a venv of its own, or skip where it cannot be had."""
    subprocess.run([python, "-m", "venv", str(folder)], check=True)
    pip = [str(folder / "bin" / "python"), "-m", "pip", "install", "-q", "--disable-pip-version-check"]
    got = subprocess.run([*pip, requirement], capture_output=True, text=True, check=False)
    if got.returncode:
        pytest.skip(f"{requirement} is not to be had here: {got.stderr.strip()[-200:]}")
    return folder / "bin" / "nox"


def _run(nox: Path, folder: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    environ = {name: value for name, value in os.environ.items() if not name.startswith(("PYTHON", "NOX", "VIRTUAL"))}
    environ |= {"PATH": f"{nox.parent}:{environ['PATH']}", "MPS_BUILD_NO_UV": "1"}
    argv = [str(nox), "-f", str(NOXFILE), "--envdir", str(folder / "nox"), *arguments]
    return subprocess.run(argv, cwd=folder, env=environ, capture_output=True, text=True, timeout=900, check=False)


def _needed() -> str:
    found = re.search(r'needs_version = ">=([\d.]+)"', NOXFILE.read_text(encoding="utf-8"))
    assert found
    return found[1]


@pytest.mark.slow
@pytest.mark.parametrize("requirement", [f"nox=={_needed()}", "nox==2026.4.10", "nox"])
def test_a_failing_session_ends_with_its_own_status(requirement: str, tmp_path: Path) -> None:
    nox = _nox(tmp_path / "venv", sys.executable, requirement)

    good = _run(nox, tmp_path, "-s", "dev", "--", "matrix")
    bad = _run(nox, tmp_path, "-s", "audit_wheel", "--", "there-is-no-such.whl")
    rejected = _run(nox, tmp_path, "-s", "doctor", "--", "v2.6.0")  # no Mac, or a Mac that lacks something: 3 or 0

    assert good.returncode == 0, good.stderr
    assert bad.returncode == 2, bad.stderr
    assert rejected.returncode == (3 if sys.platform != "darwin" else rejected.returncode), rejected.stderr
    assert "AttributeError" not in good.stderr + bad.stderr + rejected.stderr


@pytest.mark.slow
@pytest.mark.parametrize("version", ["3.8", "3.9"])
def test_the_newest_nox_of_an_older_python_says_what_is_needed(version: str, tmp_path: Path) -> None:
    nox = _nox(tmp_path / "venv", _old_python(version), f"nox>={_needed()}")

    ran = _run(nox, tmp_path, "-s", "doctor")

    assert ran.returncode != 0
    assert "error: mps-build needs Python 3.10 or newer" in ran.stderr
    assert "Traceback" not in ran.stderr


def test_no_variable_of_the_callers_tools_reaches_a_test() -> None:
    """`nox -s tests` sets some to harm; a module's own import sees none either."""
    assert not [name for name in os.environ if name.startswith(("NOX_", "UV_", "PIP_", "CONDA_", "GIT_"))]
    assert "UV_PYTHON" not in _AT_IMPORT
