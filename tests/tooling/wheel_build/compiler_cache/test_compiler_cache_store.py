"""The fleet's compiler cache: set in one place, tried first, left out when it is down, never named in a receipt."""

from __future__ import annotations

import os
import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from mps_build.commands.shared.parser import parse_options
from mps_build.common.console import Console
from mps_build.common.errors import UsageError
from mps_build.common.workspace import Workspace
from mps_build.wheel_build.build_request import BuildRequest
from mps_build.wheel_build.compiler_cache.launcher import cache_settings
from mps_build.wheel_build.compiler_cache.store import choose_store, redacted, store_problem
from mps_build.wheel_build.pipeline import Pipeline
from mps_build.wheel_build.planning import plan


@contextmanager
def listening(answer: bytes) -> Iterator[int]:
    """Serve one connection on this machine with a fixed answer."""
    with socket.create_server(("127.0.0.1", 0)) as server:

        def serve() -> None:
            connection, _ = server.accept()
            with connection:
                connection.recv(64)
                connection.sendall(answer)

        thread = threading.Thread(target=serve, daemon=True)
        thread.start()
        yield int(server.getsockname()[1])
        thread.join()


def up(host: str, port: int) -> None:
    return None


def down(host: str, port: int) -> str:
    return "refused"


def test_a_redis_that_answers_is_used() -> None:
    with listening(b"+PONG\r\n") as port:
        found = choose_store({"MPS_BUILD_SHARED_CACHE": f"redis://127.0.0.1:{port}"}, shared=True)

    assert found.variables["SCCACHE_REDIS_ENDPOINT"] == f"tcp://127.0.0.1:{port}"
    assert found.store == f"redis 127.0.0.1:{port}"
    assert found.warnings == ()


def test_a_store_that_is_down_is_left_out_with_a_warning() -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
    environ = {"MPS_BUILD_SHARED_CACHE": f"redis://u:hunter2@127.0.0.1:{port}", "SCCACHE_REDIS": "redis://127.0.0.1"}

    found = choose_store(environ, shared=True)

    assert not any(name.startswith("SCCACHE_REDIS") for name in found.variables)
    assert found.dropped == ("SCCACHE_REDIS",)
    assert "local disk only" in found.warnings[0]
    assert "hunter2" not in found.warnings[0]


def test_what_is_no_redis_does_not_pass_for_one() -> None:
    with listening(b"220 mail ready\r\n") as port:
        assert store_problem("127.0.0.1", port) == "it answers, but not as a store"


def test_a_release_shares_nothing_unless_requested() -> None:
    environ = {"MPS_BUILD_SHARED_CACHE": "redis://cache", "SCCACHE_REDIS_ENDPOINT": "tcp://cache:6379"}

    found = choose_store(environ, shared=False, answers=up)

    assert found.store == "local disk"
    assert not any(name.startswith("SCCACHE_REDIS") for name in found.variables)
    assert found.upstream is None
    assert found.dropped == ("SCCACHE_REDIS_ENDPOINT",)


def planned(flags: str, folder: Path, monkeypatch: pytest.MonkeyPatch) -> tuple[BuildRequest, Workspace]:
    """Return what build_wheel plans on a host with both caches (they note how they are called) and a store."""
    for name in ("ccache", "sccache"):
        (folder / name).write_text(f'#!/bin/sh\necho "$@" >> {folder}/calls\n', encoding="utf-8")
        (folder / name).chmod(0o755)
    monkeypatch.setenv("PATH", f"{folder}{os.pathsep}{os.environ['PATH']}")
    for name in ("MPS_BUILD_WORK", "MPS_BUILD_CACHE"):
        monkeypatch.setenv(name, str(folder / name))
    monkeypatch.setattr("mps_build.wheel_build.compiler_cache.store.store_problem", up)
    monkeypatch.setenv("MPS_BUILD_SHARED_CACHE", "redis://fleet")
    return plan(parse_options("build_wheel", ["sample", *flags.split()]))


@pytest.mark.parametrize(
    ("flags", "is_shared"),
    [
        ("--cache sccache", False),
        ("--cache sccache --shared-cache", True),
        ("--cache sccache --profile develop", True),
        ("--cache ccache", False),
        ("", False),
    ],
)
def test_build_wheel_shares_only_when_requested(
    flags: str, is_shared: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """From the arguments to the variables of every compiler, with a store in the caller's environment."""
    monkeypatch.setenv("CCACHE_REMOTE_STORAGE", "redis://theirs")
    monkeypatch.setenv("SCCACHE_REDIS_ENDPOINT", "tcp://theirs")

    request, workspace = planned(flags, tmp_path, monkeypatch)

    assert (request.compilers.cache.upstream is not None) == is_shared
    settings = cache_settings(request.compilers.launcher, base=workspace.root)
    whole = {**request.compilers.cache.variables, **settings}
    assert ("SCCACHE_REDIS_ENDPOINT" in whole) == is_shared
    if request.compilers.launcher and request.compilers.launcher.name == "ccache":
        assert whole["CCACHE_REMOTE_STORAGE"] == ""
    if request.compilers.launcher and request.compilers.launcher.name == "sccache":
        assert "SCCACHE_REDIS_ENDPOINT" in request.compilers.cache.dropped


def test_a_build_goes_through_the_relay_and_ends_its_server(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    request, workspace = planned("--cache sccache --shared-cache", tmp_path, monkeypatch)
    seen: list[str] = []

    def build_for(self: Pipeline, python: str, tree: object, source: str) -> None:
        endpoint = self.context.request.compilers.cache.variables["SCCACHE_REDIS_ENDPOINT"]
        with socket.create_connection(("127.0.0.1", int(endpoint.rpartition(":")[2]))) as connection:
            connection.sendall(b"*1\r\n$4\r\nPING\r\n")
            seen.append(connection.recv(64).decode())

    monkeypatch.setattr(Pipeline, "prepare_source", lambda self: (None, "source"))
    monkeypatch.setattr(Pipeline, "_build_for", build_for)

    pipeline = Pipeline(request, workspace=workspace, console=Console())
    before = pipeline.context.request
    pipeline.build()

    assert pipeline.context.request is before
    assert seen == ["+PONG\r\n"]
    assert (tmp_path / "calls").read_text(encoding="utf-8").endswith("--stop-server\n")


def test_s3_takes_its_keys_from_the_environment() -> None:
    environ = {
        "MPS_BUILD_SHARED_CACHE": "s3://wheels?endpoint=https://minio.lan:9000&region=eu",
        "AWS_ACCESS_KEY_ID": "k",
    }
    tried: list[tuple[str, int]] = []

    found = choose_store(environ, shared=True, answers=lambda host, port: tried.append((host, port)))

    assert tried == [("minio.lan", 9000)]
    assert found.variables["SCCACHE_BUCKET"] == "wheels"
    assert found.variables["SCCACHE_ENDPOINT"] == "https://minio.lan:9000"
    assert found.variables["AWS_ACCESS_KEY_ID"] == "k"


def test_sccaches_own_variables_are_taken_too() -> None:
    environ = {"SCCACHE_REDIS_ENDPOINT": "tcp://cache:7000", "SCCACHE_REDIS_PASSWORD": "p"}

    found = choose_store(environ, shared=True, answers=up)

    assert found.variables["SCCACHE_REDIS_ENDPOINT"] == "tcp://cache:7000"
    assert found.variables["SCCACHE_REDIS_PASSWORD"] == "p"


def test_base_folders_are_never_passed_on() -> None:
    found = choose_store({"SCCACHE_BASEDIRS": "/src"}, shared=False)

    assert found.dropped == ("SCCACHE_BASEDIRS",)
    assert found.warnings == ("SCCACHE_BASEDIRS gives wrong objects: left out",)


@pytest.mark.parametrize("name", ["SCCACHE_CONF", "SCCACHE_SERVER_PORT", "SCCACHE_SERVER_UDS", "SCCACHE_DIRECT"])
def test_no_file_and_no_running_server_of_the_callers_decides(name: str) -> None:
    found = choose_store({name: "theirs", "MPS_BUILD_SHARED_CACHE": "redis://cache"}, shared=True, answers=up)

    assert found.dropped == (name,)
    assert found.variables.get(name) != "theirs"
    assert found.variables["SCCACHE_CONF"] == os.devnull


def test_other_settings_get_another_server() -> None:
    environ = {"MPS_BUILD_SHARED_CACHE": "redis://cache"}

    ports = {
        choose_store(environ, shared=shared, answers=answers).variables["SCCACHE_SERVER_PORT"]
        for shared, answers in ((True, up), (True, down), (False, up))
    }

    assert len(ports) == 2


@pytest.mark.parametrize("address", ["http://cache", "redis://", "redis://cache:port", "s3://"])
def test_an_address_of_another_kind_is_refused(address: str) -> None:
    with pytest.raises(UsageError, match="the shared cache"):
        choose_store({"MPS_BUILD_SHARED_CACHE": address}, shared=True, answers=up)


def test_a_store_must_be_named_to_be_shared() -> None:
    with pytest.raises(UsageError, match="no store is named"):
        choose_store({}, shared=True)


def test_no_password_gets_into_a_receipt() -> None:
    environ = {
        "SCCACHE_REDIS_PASSWORD": "hunter2",
        "SCCACHE_REDIS": "redis://u:hunter2@cache",
        "AWS_SECRET_ACCESS_KEY": "hunter2",
        "AWS_ACCESS_KEY_ID": "hunter2",
        "AWS_SESSION_TOKEN": "hunter2",
        "USE_MPS": "1",
    }

    assert "hunter2" not in repr(redacted(environ))
    assert redacted(environ)["USE_MPS"] == "1"
