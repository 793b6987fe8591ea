"""Which build of torch is fetched: one for the CPU where there is one, and what it brings is said before."""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping, Sequence
from http.server import BaseHTTPRequestHandler
from pathlib import Path

import pytest
from http_servers import page, served
from mps_build.common.errors import MpsBuildError
from mps_build.common.reporting import SilentReporter
from mps_build.common.wheels.pip_call import limited_pip
from mps_build.verify.bisection.versions import Index, Venvs
from mps_build.verify.target.environments import EnvironmentStore
from mps_build.verify.target.interpreter import Interpreter, describe_interpreter
from mps_build.verify.target.wheel import fetch_wheel
from small_wheels import write_wheel

LARGE = 526_574_961


class Reported(SilentReporter):
    """What the user is shown, in order."""

    def __init__(self) -> None:
        self.said: list[str] = []

    def started(self, title: str, *, total: int | None = None, unit: str = "steps") -> None:
        self.said.append(title)

    def line(self, text: str) -> None:
        self.said.append(text)


@pytest.fixture(autouse=True)
def own_pip(monkeypatch: pytest.MonkeyPatch) -> None:
    """The session's pip in the place of one of ours, which takes seconds to make."""
    pip = limited_pip(sys.executable)
    monkeypatch.setattr("mps_build.verify.target.wheel.own_pip", lambda _: (*pip, "--no-input"))


@pytest.fixture(scope="module")
def ours() -> Interpreter:
    return describe_interpreter(Path(sys.executable), environ=dict(os.environ))


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder of wheels: torch 2.13.0 for CUDA under two names and for the CPU, and 2.14.0 for CUDA alone."""
    path = tmp_path_factory.mktemp("builds")
    for version, needs in (
        ("2.13.0", ("nvidia-cublas", "triton")),
        ("2.13.0+cu130", ("nvidia-cublas", "triton")),
        ("2.13.0+cpu", ("sympy",)),
        ("2.14.0", ("nvidia-cublas",)),
    ):
        write(path, "torch", version, needs=needs)
    for name in ("nvidia-cublas", "triton", "sympy"):
        write(path, name, "1.0")
    return path


def write(folder: Path, name: str, version: str, *, needs: Sequence[str] = ()) -> Path:
    metadata = f"Metadata-Version: 2.4\nName: {name}\nVersion: {version}\n"
    metadata += "".join(f"Requires-Dist: {each}\n" for each in needs)
    stem = f"{name.replace('-', '_')}-{version}"
    files = {f"{stem}.dist-info/METADATA": metadata.encode(), f"{name}/payload.bin": os.urandom(2_000_000)}
    return write_wheel(folder, files, name=f"{stem}-py3-none-any.whl")


def store(cache: Path, settings: Mapping[str, str], *, wants_cuda: bool = False) -> tuple[EnvironmentStore, Reported]:
    reported = Reported()
    own = {name: value for name, value in os.environ.items() if not name.startswith("PIP_")}
    environ = {**own, "PIP_CONFIG_FILE": "/dev/null", "PIP_NO_CACHE_DIR": "1", "no_proxy": "127.0.0.1", **settings}
    log = cache.parent / "log"
    return EnvironmentStore(cache=cache, environ=environ, log=log, reporter=reported, wants_cuda=wants_cuda), reported


def of(folder: Path) -> dict[str, str]:
    return {"PIP_NO_INDEX": "1", "PIP_FIND_LINKS": folder.as_uri()}


def test_a_build_for_the_cpu_is_taken_where_another_would_come_first(
    tmp_path: Path, folder: Path, ours: Interpreter
) -> None:
    """pip alone takes +cu130: of two local versions the later in the alphabet."""
    requirement = "torch<2.14,>=2.10"
    made, reported = store(tmp_path / "cache", of(folder))

    assert "2.13.0+cpu" in fetch_wheel(requirement, ours, made).name
    size = sum(path.stat().st_size for path in folder.glob("*") if path.name.startswith(("torch-2.13.0+cpu", "sympy")))
    line = f"torch 2.13.0+cpu: a build for the CPU; 2 packages, {size / 1e6:.1f} MB to fetch; about 0.9 GB on disk"
    assert reported.said.index(line) < reported.said.index(f"Fetch {requirement}")
    assert not any("CUDA" in each for each in reported.said)


@pytest.mark.slow
def test_a_build_for_cuda_is_said_before_it_is_fetched_with_the_places_that_have_none_for_the_cpu(
    tmp_path: Path, folder: Path, ours: Interpreter
) -> None:
    made, reported = store(tmp_path / "cache", of(folder))

    assert fetch_wheel("torch==2.14.0", ours, made).name == "torch-2.14.0-py3-none-any.whl"
    begun = reported.said.index("Fetch torch==2.14.0")
    none, what = reported.said[begun - 2 : begun]
    assert none.startswith(f"no torch==2.14.0+cpu, a build for the CPU, in {folder.as_uri()}; ")
    assert what.startswith("torch 2.14.0: a build for CUDA; 2 packages, 4.0 MB to fetch; ")


@pytest.mark.slow
def test_a_build_for_cuda_is_taken_where_it_is_wanted(tmp_path: Path, folder: Path, ours: Interpreter) -> None:
    made, reported = store(tmp_path / "cache", of(folder), wants_cuda=True)

    assert "+cu130" in fetch_wheel("torch==2.13.0", ours, made).name
    assert not any(each.startswith("no torch") for each in reported.said)


@pytest.mark.slow
def test_the_size_is_said_where_an_index_has_no_metadata_and_nothing_of_the_file_is_fetched_before(
    tmp_path: Path, ours: Interpreter
) -> None:
    file, sent = "torch-2.13.0-py3-none-any.whl", []

    def answer(handler: BaseHTTPRequestHandler) -> None:
        if not handler.path.endswith(file):
            link = f'<a href="/torch/{file}#sha256={"0" * 64}">{file}</a>'
            page(handler, f"<!DOCTYPE html><html><body>{link}</body></html>".encode())
            return
        sent.append(list(reported.said))
        handler.send_response(200)
        handler.send_header("Content-Length", str(LARGE))
        handler.end_headers()

    with served(answer) as (address, _):
        made, reported = store(tmp_path / "cache", {"PIP_INDEX_URL": address, "PIP_RETRIES": "0"})
        with pytest.raises(MpsBuildError):  # the file is cut off
            fetch_wheel("torch==2.13.0", ours, made)
    line = "torch 2.13.0: the index does not tell what it is a build for; 526.6 MB to fetch, and what it needs"
    assert reported.said.index(line) < reported.said.index("Fetch torch==2.13.0")
    assert any(each.startswith(f"no torch==2.13.0+cpu, a build for the CPU, in {address}") for each in reported.said)
    assert line in max(sent, key=len)  # a question, which is cut off before the body, may be noticed last


@pytest.mark.slow
def test_a_bisection_takes_builds_for_the_cpu_too(tmp_path: Path, folder: Path, ours: Interpreter) -> None:
    reported = Reported()
    environ = store(tmp_path, {})[0].environ
    index = Index(arguments=("--no-index", "--find-links", folder.as_uri()), environ=environ)
    venvs = Venvs(folder=tmp_path, index=index, python_of={"2.13.0": Path(sys.executable)}, reporter=reported)

    assert "2.13.0+cpu" in venvs.fetch("2.13.0").name
    assert any(each.startswith("torch 2.13.0+cpu: a build for the CPU; 2 packages") for each in reported.said)
