"""The wheel of torch under test: fetched within limits, and taken from the cache by its hash."""

from __future__ import annotations

import os
import platform
import sys
import venv
from pathlib import Path

import pytest
from http_servers import patience, served
from mps_build.common.errors import BuildEnvironmentError, UsageError
from mps_build.common.reporting import SilentReporter
from mps_build.verify.target.environments import EnvironmentStore
from mps_build.verify.target.interpreter import Interpreter
from mps_build.verify.target.wheel import fetch_wheel
from processes import link_pip
from small_wheels import write_wheel

NAME = "torch-2.15.0-py3-none-any.whl"
OURS = Interpreter(
    executable=Path(sys.executable),
    version=platform.python_version(),
    short=f"{sys.version_info[0]}.{sys.version_info[1]}",
    implementation="CPython",
    machine="any",
    system="Linux",
    platform="any",
    folders=(),
    torches=(),
)


@pytest.fixture(scope="module")
def cache(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """One cache for all, with a pip in it as `own_pip` leaves one: this session's, for to make one takes seconds."""
    folder = tmp_path_factory.mktemp("fetched") / "cache"
    made = folder / "pip" / OURS.short
    venv.create(made, with_pip=False, symlinks=True)
    link_pip(made)
    (made / "ready").write_text("")
    return folder


def store(cache: Path, *, offline: bool = False, **settings: str) -> EnvironmentStore:
    own = {name: value for name, value in os.environ.items() if not name.startswith("PIP_")}
    environ = {**own, "PIP_CONFIG_FILE": "/dev/null", "PIP_NO_CACHE_DIR": "1", "no_proxy": "127.0.0.1", **settings}
    log = cache.with_name("log")
    return EnvironmentStore(cache=cache, environ=environ, log=log, reporter=SilentReporter(), offline=offline)


@pytest.mark.slow
def test_a_cached_torch_of_the_same_size_is_fetched_anew_and_offline_is_refused(tmp_path: Path, cache: Path) -> None:
    index = tmp_path / "index"
    index.mkdir()
    whole = write_wheel(index, {"torch/__init__.py": b"1"}, name=NAME).read_bytes()
    environments = store(cache, PIP_NO_INDEX="1", PIP_FIND_LINKS=index.as_uri())
    offline = store(cache, offline=True)

    first = fetch_wheel("torch==2.15.0", OURS, environments)
    assert fetch_wheel("torch==2.15.0", OURS, offline) == first
    first.write_bytes(whole[:-1] + b"?")

    with pytest.raises(BuildEnvironmentError, match="--offline does not allow fetching it"):
        fetch_wheel("torch==2.15.0", OURS, offline)
    assert fetch_wheel("torch==2.15.0", OURS, environments).read_bytes() == whole


@pytest.mark.slow
def test_a_server_that_asks_to_come_back_tomorrow_is_no_missing_wheel(cache: Path) -> None:
    with (
        served(patience("86400")) as (address, _),
        pytest.raises(BuildEnvironmentError, match="answers 503 and asks for a pause of 86400 s"),
    ):
        fetch_wheel("torch==2.14.1", OURS, store(cache, PIP_INDEX_URL=address))


@pytest.mark.slow
def test_a_constraint_of_pips_own_settings_is_named(tmp_path: Path, cache: Path) -> None:
    write_wheel(tmp_path, {"torch/__init__.py": b"1"}, name="torch-2.16.0-py3-none-any.whl")
    (tmp_path / "constraints.txt").write_text("torch<=2.14.1\n")
    constraint = str(tmp_path / "constraints.txt")
    environments = store(cache, PIP_NO_INDEX="1", PIP_FIND_LINKS=tmp_path.as_uri(), PIP_CONSTRAINT=constraint)

    with pytest.raises(UsageError, match=r"do not allow torch==2\.16\.0: a constraint says torch<=2\.14\.1"):
        fetch_wheel("torch==2.16.0", OURS, environments)
