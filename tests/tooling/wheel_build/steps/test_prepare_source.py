"""The source step, on real git repositories in folders and behind a real git daemon."""

from __future__ import annotations

import contextlib
import os
import random
import shutil
import signal
import socket
import subprocess
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from difflib import unified_diff
from pathlib import Path
from typing import Any

import pytest
from git_history import ENVIRON, git, repository
from mps_build.common.environment import fetch_environ
from mps_build.common.errors import SourceError
from mps_build.common.receipts import Ledger
from mps_build.common.recipe.catalogue import find_recipe, recipes_root
from mps_build.common.recipe.embedded_source import materialise
from mps_build.common.reporting import SilentReporter
from mps_build.common.workspace import Workspace
from mps_build.wheel_build.artifacts import SourceTree
from mps_build.wheel_build.build_request import SourceRequest
from mps_build.wheel_build.source_state import exclude_ours, restore, source_state
from mps_build.wheel_build.steps.prepare_source import fetch_source, prepare_source, resolve_ref


def _fetch(tmp_path: Path, url: str, commit: str, **options: Any) -> SourceTree:
    return fetch_source(
        repository=url,
        commit=commit,
        tag=options.pop("tag", "v1"),
        destination=tmp_path / "work with blanks ü" / "source",
        cache=tmp_path / "cache",
        environ=ENVIRON,
        log=tmp_path / "log",
        reporter=options.pop("reporter", SilentReporter()),
        **options,
    )


@pytest.fixture
def nested(tmp_path: Path) -> tuple[Path, str]:
    """A repository with a submodule that has a submodule."""
    repository(tmp_path / "served" / "leaf", {"leaf.txt": "leaf"})
    repository(tmp_path / "served" / "branch", {"branch.txt": "branch"}, {"deep/leaf": tmp_path / "served" / "leaf"})
    top = tmp_path / "served" / "top"
    return top, repository(top, {"top.txt": "top"}, {"third_party/branch": tmp_path / "served" / "branch"})


def test_the_pinned_commit_comes_with_all_nested_submodules(tmp_path: Path, nested: tuple[Path, str]) -> None:
    tree = _fetch(tmp_path, str(nested[0]), nested[1])

    assert (tree.root / "third_party/branch/deep/leaf/leaf.txt").read_text() == "leaf"
    assert sorted(tree.submodules) == ["third_party/branch", "third_party/branch/deep/leaf"]
    assert tree.epoch == 1767225600


def test_a_second_fetch_needs_no_network(tmp_path: Path, nested: tuple[Path, str]) -> None:
    _fetch(tmp_path, str(nested[0]), nested[1])
    shutil.move(tmp_path / "served", tmp_path / "gone")

    tree = _fetch(tmp_path, str(nested[0]), nested[1], offline=True)

    assert (tree.root / "third_party/branch/deep/leaf/leaf.txt").is_file()


def test_offline_without_a_mirror_says_so(tmp_path: Path, nested: tuple[Path, str]) -> None:
    with pytest.raises(SourceError, match="--offline does not allow") as error:
        _fetch(tmp_path, str(nested[0]), nested[1], offline=True)

    assert error.value.hint == "run once without --offline"


def test_a_moved_tag_is_an_error_that_names_both_commits(tmp_path: Path, nested: tuple[Path, str]) -> None:
    top, pinned = nested
    (top / "top.txt").write_text("other")
    git(top, "commit", "-q", "-a", "-m", "second")
    git(top, "tag", "-f", "-a", "v1", "-m", "moved")

    with pytest.raises(SourceError, match=f"tag v1 has moved.*{pinned}.*{git(top, 'rev-parse', 'HEAD')}"):
        _fetch(tmp_path, str(top), pinned)


def test_a_commit_that_is_not_there_is_named_with_a_hint(tmp_path: Path, nested: tuple[Path, str]) -> None:
    with pytest.raises(SourceError) as error:
        _fetch(tmp_path, str(nested[0]), "0" * 40, tag=None)

    assert "no such commit" in str(error.value.hint)


def test_a_submodule_that_is_gone_is_an_error_and_the_rest_is_kept(tmp_path: Path, nested: tuple[Path, str]) -> None:
    shutil.move(tmp_path / "served" / "leaf", tmp_path / "leaf")

    with pytest.raises(SourceError):
        _fetch(tmp_path, str(nested[0]), nested[1])

    shutil.move(tmp_path / "leaf", tmp_path / "served" / "leaf")
    assert _fetch(tmp_path, str(nested[0]), nested[1]).submodules


@pytest.mark.parametrize("how", ["truncated pack", "objects gone"])
def test_a_damaged_mirror_is_fetched_anew(tmp_path: Path, nested: tuple[Path, str], how: str) -> None:
    _fetch(tmp_path, str(nested[0]), nested[1])
    mirror = next((tmp_path / "cache" / "git").glob("*top*.git"))
    for file in [path for path in (mirror / "objects").rglob("*") if path.is_file()]:
        file.chmod(0o644)
        if how == "objects gone":
            file.unlink()
        else:
            file.write_bytes(file.read_bytes()[: file.stat().st_size // 2])

    tree = _fetch(tmp_path, str(nested[0]), nested[1])

    assert (tree.root / "top.txt").read_text() == "top"


def test_locks_of_a_killed_fetch_do_not_stop_the_next(tmp_path: Path, nested: tuple[Path, str]) -> None:
    _fetch(tmp_path, str(nested[0]), nested[1])
    mirror = next((tmp_path / "cache" / "git").glob("*top*.git"))
    git(mirror, "update-ref", "-d", f"refs/mps-build/{nested[1]}")
    (mirror / "shallow.lock").touch()

    assert _fetch(tmp_path, str(nested[0]), nested[1]).commit == nested[1]


def test_a_network_that_dies_in_the_middle_is_said_and_the_next_try_goes_on(tmp_path: Path) -> None:
    served = tmp_path / "served"
    repository(served / "heavy", {"noise.bin": random.Random(1).randbytes(3_000_000).hex()})
    repository(served / "top", {"top.txt": "top"})
    daemon_port, port = _free_port(), _free_port()
    url = f"git://127.0.0.1:{port}"
    git(served / "top", "submodule", "--quiet", "add", str(served / "heavy"), "heavy")
    git(served / "top", "config", "-f", ".gitmodules", "submodule.heavy.url", f"{url}/heavy")
    git(served / "top", "commit", "-q", "-a", "-m", "second")
    top = git(served / "top", "rev-parse", "HEAD")

    cut = _cutting(port, daemon_port, after=1_000_000)
    with _daemon(served, daemon_port), cut, pytest.raises(SourceError) as error:
        _fetch(tmp_path, f"{url}/top", top, tag=None)
    assert "the network failed" in str(error.value.hint)
    assert any((tmp_path / "cache" / "git").glob("*top*.git"))

    with _daemon(served, port):
        assert _fetch(tmp_path, f"{url}/top", top, tag=None).submodules.keys() == {"heavy"}


@pytest.mark.parametrize("tag", ["v1", None])
def test_the_first_contact_without_a_network_says_that_and_what_works_without_one(
    tmp_path: Path, tag: str | None
) -> None:
    url = f"https://127.0.0.1:{_free_port()}/top"

    with pytest.raises(SourceError, match="cannot be reached, and the cache does not have it") as error:
        _fetch(tmp_path, url, "0" * 40, tag=tag)
    with pytest.raises(SourceError, match="cannot be reached"):
        resolve_ref(url, "main", environ=ENVIRON)

    assert "https_proxy" in str(error.value.hint) and "--source" in str(error.value.hint)
    assert "goes on" not in str(error.value.hint)


def test_a_branch_a_tag_and_a_commit_resolve_to_a_commit(tmp_path: Path, nested: tuple[Path, str]) -> None:
    top, commit = nested

    assert {resolve_ref(str(top), ref, environ=ENVIRON) for ref in ("main", "v1", commit)} == {commit}
    with pytest.raises(SourceError, match="no branch or tag 'nowhere'"):
        resolve_ref(str(top), "nowhere", environ=ENVIRON)


def test_changes_in_the_tree_and_in_submodules_are_seen_and_taken_back(
    tmp_path: Path, nested: tuple[Path, str]
) -> None:
    tree = _fetch(tmp_path, str(nested[0]), nested[1])
    exclude_ours(tree.root)
    pinned = {"": str(tree.commit), **tree.submodules}
    (tree.root / "build").mkdir()
    (tree.root / "build" / "product.o").touch()
    assert source_state(tree.root, pinned, environ=ENVIRON) == ((), "")

    (tree.root / "third_party/branch/branch.txt").write_text("changed")
    (tree.root / "new.mm").write_text("new")

    changed, digest = source_state(tree.root, pinned, environ=ENVIRON)
    assert changed == ("new.mm", "third_party/branch/branch.txt")
    (tree.root / "new.mm").write_text("newer")
    assert source_state(tree.root, pinned, environ=ENVIRON)[1] != digest
    restore(tree.root, environ=ENVIRON, submodules=tree.submodules)
    assert source_state(tree.root, pinned, environ=ENVIRON) == ((), "")


@contextmanager
def _cutting(port: int, behind: int, *, after: int) -> Iterator[None]:
    """A network that carries `after` bytes to the client and then is gone."""
    ends = [socket.create_server(("127.0.0.1", port))]
    threads: list[threading.Thread] = []
    left = after

    def carry(source: socket.socket, target: socket.socket, counted: bool) -> None:
        nonlocal left
        with contextlib.suppress(OSError):
            while (left >= 0) and (chunk := source.recv(65536)):
                left -= len(chunk) if counted else 0
                target.sendall(chunk)
        for end in (source, target):
            with contextlib.suppress(OSError):
                end.shutdown(socket.SHUT_RDWR)

    def accept() -> None:
        with contextlib.suppress(OSError):
            while left >= 0:
                pair = (ends[0].accept()[0], socket.create_connection(("127.0.0.1", behind)))
                ends.extend(pair)
                for arguments in ((*pair, False), (pair[1], pair[0], True)):
                    threads.append(threading.Thread(target=carry, args=arguments))
                    threads[-1].start()

    threads.append(threading.Thread(target=accept))
    threads[0].start()
    try:
        yield
    finally:
        for end in ends:
            with contextlib.suppress(OSError):
                end.shutdown(socket.SHUT_RDWR)
        for thread in threads:
            thread.join(5)
        for end in ends:
            end.close()


@contextmanager
def _daemon(folder: Path, port: int) -> Iterator[subprocess.Popen[bytes]]:
    argv = [
        "git",
        "daemon",
        "--reuseaddr",
        "--listen=127.0.0.1",
        f"--port={port}",
        "--export-all",
        f"--base-path={folder}",
    ]
    process = subprocess.Popen(argv, env=ENVIRON, stderr=subprocess.DEVNULL, start_new_session=True)
    try:
        for _ in range(100):
            with socket.socket() as probe:
                if probe.connect_ex(("127.0.0.1", port)) == 0:
                    break
            time.sleep(0.05)
        yield process
    finally:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        process.wait()


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


# A tree of ours that somebody edited is never made anew under his hands.


@pytest.fixture(name="request_")
def _request(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> SourceRequest:
    monkeypatch.setenv("MPS_BUILD_CACHE", str(tmp_path / "cache"))
    recipe = find_recipe("sample")
    embedded = materialise(recipes_root() / "sample", tmp_path / "embedded", expected=recipe.commit)
    return SourceRequest(recipe=recipe, origin="git", repository=str(embedded.url), commit=embedded.commit)


def _prepare(request: SourceRequest, folder: Path) -> SourceTree:
    workspace = Workspace(root=folder / "work")
    environ, quiet = fetch_environ(os.environ), SilentReporter()
    ledger = Ledger(workspace.receipts)
    return prepare_source(
        request, workspace=workspace, ledger=ledger, environ=environ, reporter=quiet, unchanged=False
    )[0]


def _patched(request: SourceRequest, root: Path, folder: Path) -> SourceRequest:
    listed = (root / "operators.txt").read_text(encoding="utf-8").splitlines(keepends=True)
    lines = unified_diff(listed, ["# patched\n", *listed], "a/operators.txt", "b/operators.txt")
    patch = folder / "mine.patch"
    patch.write_text("Description: a line more\n" + "".join(lines), encoding="utf-8")
    return replace(request, extra_patches=(patch,))


def test_another_patch_does_not_take_an_edit_back(request_: SourceRequest, tmp_path: Path) -> None:
    root = _prepare(request_, tmp_path).root
    edited = root / "csrc" / "core.cpp"
    before = edited.read_text(encoding="utf-8")
    edited.write_text(before + "// mine\n", encoding="utf-8")

    with pytest.raises(SourceError, match=r"was edited \(csrc/core.cpp\)") as caught:
        _prepare(_patched(request_, root, tmp_path), tmp_path)

    assert edited.read_text(encoding="utf-8").endswith("// mine\n")
    assert "git -C" in str(caught.value.hint)
    edited.write_text(before, encoding="utf-8")
    assert _prepare(_patched(request_, root, tmp_path), tmp_path).root == root
    assert "# patched" in (root / "operators.txt").read_text(encoding="utf-8")


def test_another_commit_does_not_take_an_edit_back(request_: SourceRequest, tmp_path: Path) -> None:
    root = _prepare(request_, tmp_path).root
    (root / "mine.txt").write_text("an untracked file of mine", encoding="utf-8")

    with pytest.raises(SourceError, match=r"was edited \(mine.txt\)"):
        _prepare(replace(request_, commit="0" * 40), tmp_path)

    assert (root / "mine.txt").is_file()


def test_a_tree_that_nobody_edited_is_made_anew(request_: SourceRequest, tmp_path: Path) -> None:
    root = _prepare(request_, tmp_path).root

    assert _prepare(_patched(request_, root, tmp_path), tmp_path).dirty == ()
