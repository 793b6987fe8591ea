"""The environment of a torch: one on disk, whatever else a command wants beside it."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from mps_build.common.errors import BuildEnvironmentError
from mps_build.common.reporting import SilentReporter
from mps_build.verify.target import environments
from mps_build.verify.target.environments import EnvironmentStore, make_environment, own_pip
from mps_build.verify.target.interpreter import describe_interpreter, the_one_torch
from mps_build.verify.target.wheel import sha256_of
from processes import link_pip
from small_wheels import write_wheel

make_venv = environments._make_venv
PAYLOAD = b"\0" * 5_000_000


class Reported(SilentReporter):
    def __init__(self) -> None:
        self.notes: list[str] = []

    def advanced(self, done: int, *, total: int | None = None, note: str = "") -> None:
        self.notes.append(f"{done} {note}")


@pytest.fixture(scope="module", params=["a pip at hand", pytest.param("a pip of its own", marks=pytest.mark.slow)])
def index(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """A folder of wheels: torch with what it needs, in two versions, and two packages that want it.

    A venv with pip is made for real by the slow session; else one without it, to which the session's is linked.
    """
    folder = tmp_path_factory.mktemp("environments") / "index"
    folder.mkdir()
    _wheel(folder, "torch", "2.13.0", needs="graphs", payload=PAYLOAD)
    _wheel(folder, "torch", "2.14.0", needs="graphs", payload=PAYLOAD)
    _wheel(folder, "graphs", "1.0")
    _wheel(folder, "graphs", "2.0rc1")
    _wheel(folder, "trainer", "1.0", needs="torch>=2")
    _wheel(folder, "modern", "1.0", needs="graphs==2.0rc1")
    _wheel(folder, "future", "1.0", needs="torch>=2.14")
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(environments, "PYTEST", ())
        if request.param == "a pip at hand":
            patched.setattr(environments, "_make_venv", _with_linked_pip)
        yield folder


def _with_linked_pip(python: Path, venv: Path, store: EnvironmentStore, *options: str) -> None:
    make_venv(python, venv, store, "--without-pip")
    if not options:  # Python's own venv has pip then
        link_pip(venv)


def _wheel(folder: Path, name: str, version: str, *, needs: str = "", payload: bytes = b"") -> None:
    metadata = f"Metadata-Version: 2.4\nName: {name}\nVersion: {version}\n"
    metadata += f"Requires-Dist: {needs}\n" if needs else ""
    files = {f"{name}/__init__.py": f"version = {version!r}\n".encode(), f"{name}/payload.bin": payload}
    files[f"{name}-{version}.dist-info/METADATA"] = metadata.encode()
    write_wheel(folder, files, name=f"{name}-{version}-py3-none-any.whl")


def _store(index: Path, reported: Reported) -> EnvironmentStore:
    environ = {
        "PATH": "/usr/bin:/bin",
        "PIP_CONFIG_FILE": "/dev/null",
        "PIP_NO_INDEX": "1",
        "PIP_FIND_LINKS": index.as_uri(),
        "PIP_NO_CACHE_DIR": "1",
    }
    return EnvironmentStore(cache=index.parent / "cache", environ=environ, log=index.parent / "log", reporter=reported)


def _made(index: Path, *extras: str, python: str = sys.executable) -> tuple[Path, Reported]:
    reported = Reported()
    store = _store(index, reported)
    interpreter = describe_interpreter(Path(python), environ=store.environ)
    wheel = index / "torch-2.13.0-py3-none-any.whl"
    return make_environment(wheel, sha256_of(wheel), interpreter, store, extras=extras), reported


def _answer(python: Path, question: str) -> str:
    return subprocess.run([python, "-c", question], capture_output=True, text=True, check=True).stdout.strip()


@pytest.mark.slow
def test_commands_have_one_torch_and_each_its_own_packages(index: Path) -> None:
    plain, reported = _made(index)
    made = [plain, _made(index, "trainer")[0], _made(index, "trainer", "modern")[0]]

    assert len(set(made)) == 3
    assert len({_answer(python, "import torch; print(torch.__file__)") for python in made}) == 1
    size = sum(path.stat().st_size for path in (index.parent / "cache").rglob("payload.bin"))
    assert size == len(PAYLOAD)
    has = [_answer(python, "from importlib.util import find_spec as f; print(bool(f('trainer')))") for python in made]
    assert has == ["False", "True", "True"]
    graphs = [_answer(python, "import graphs; print(graphs.version)") for python in made]
    assert graphs == ["1.0", "1.0", "2.0rc1"]
    for python in made:
        assert the_one_torch(describe_interpreter(python, environ={}))[1] == "2.13.0"
    assert any("graphs" in note for note in reported.notes), reported.notes
    assert reported.notes[-1].endswith("unpacking")


def test_two_sessions_of_one_python_share_it(index: Path, tmp_path: Path) -> None:
    sessions = [tmp_path / name / "bin" / "python" for name in ("verify", "benchmark")]
    for session in sessions:
        subprocess.run([sys.executable, "-m", "venv", "--without-pip", session.parents[1]], check=True)

    first, second = (_made(index, python=str(session))[0] for session in sessions)

    assert first == second


def test_what_wants_another_torch_is_refused_and_is_not_kept(index: Path) -> None:
    with pytest.raises(BuildEnvironmentError, match="torch"):
        _made(index, "future")

    assert not [path for path in (index.parent / "cache").rglob("ready") if path.read_text() == "future\n"]
    assert _answer(_made(index)[0], "import torch; print(torch.version)") == "2.13.0"


def test_our_own_pip_is_made_once_by_the_sessions_python(index: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """It is a venv as that of a torch is, which has a pip that installs."""
    made: list[tuple[Path, Path]] = []

    def make(python: Path, venv: Path, store: EnvironmentStore, *options: str) -> None:
        assert options == ()
        made.append((python, venv))
        venv.mkdir(parents=True)

    monkeypatch.setattr(environments, "_make_venv", make)
    store = _store(index, Reported())
    first, second = own_pip(store), own_pip(store)

    folder = store.cache / "pip" / "{}.{}".format(*sys.version_info)
    assert made == [(Path(sys.executable), folder)]
    assert first == second
    assert first[0] == str(folder / "bin" / "python")
