"""Neither an inherited variable nor an address leads git to another repository, or to a program."""

from __future__ import annotations

import json
import os
import sys
import time
from pathlib import Path

import pytest
from git_history import git as run_git
from git_history import repository
from mps_build.cli import main
from mps_build.common.environment import fetch_environ, without_repository
from mps_build.common.errors import SourceError, UsageError
from mps_build.common.git import address_fault
from mps_build.common.process import Command, capture, run_logged
from mps_build.common.recipe.catalogue import find_recipe, recipes_root
from mps_build.common.recipe.embedded_source import materialise
from mps_build.common.recipe.forms import as_yaml
from mps_build.common.reporting import SilentReporter
from mps_build.wheel_build.steps.prepare_source import fetch_source, resolve_ref

REDIRECTING = {
    "GIT_DIR": ".git",
    "GIT_WORK_TREE": ".",
    "GIT_INDEX_FILE": ".git/index",
    "GIT_OBJECT_DIRECTORY": ".git/objects",
    "GIT_ALTERNATE_OBJECT_DIRECTORIES": ".git/objects",
    "GIT_COMMON_DIR": ".git",
    "GIT_NAMESPACE": "other",
    "GIT_TEMPLATE_DIR": "template",
    "GIT_EXEC_PATH": "exec",
    "GIT_EXTERNAL_DIFF": "diff",
    "GIT_SHALLOW_FILE": "shallow",
    "GIT_ALLOW_PROTOCOL": "ext",
}


@pytest.fixture
def victim(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Another repository of the caller's, to which every variable of git points, as in a hook."""
    root = tmp_path / "victim"
    repository(root, {"a.txt": "mine\n"})
    for name, value in REDIRECTING.items():
        monkeypatch.setenv(name, value if name in ("GIT_NAMESPACE", "GIT_ALLOW_PROTOCOL") else str(root / value))
    return root


def state_of(root: Path) -> dict[str, bytes]:
    return {str(path.relative_to(root)): path.read_bytes() for path in sorted(root.rglob("*")) if path.is_file()}


def test_a_source_is_fetched_past_the_callers_repository(victim: Path, tmp_path: Path) -> None:
    before = state_of(victim)
    recipe = find_recipe("sample")
    made = materialise(recipes_root() / "sample", tmp_path / "embedded", expected=recipe.commit)
    tree = fetch_source(
        repository=str(made.url),
        commit=made.commit,
        tag=None,
        destination=tmp_path / "tree",
        cache=tmp_path / "cache",
        environ=fetch_environ(os.environ),
        log=tmp_path / "log",
        reporter=SilentReporter(),
    )

    assert (tree.root / ".git" / "HEAD").read_text(encoding="utf-8").strip() == made.commit
    assert state_of(victim) == before


@pytest.mark.parametrize("start", ["capture", "run_logged"])
def test_no_program_of_ours_inherits_a_repository(start: str, victim: Path, tmp_path: Path) -> None:
    assert victim.is_dir()
    command = Command(argv=("env",), cwd=tmp_path)
    if start == "capture":
        shown = capture(command).stdout
    else:
        run_logged(command, log=tmp_path / "log")
        shown = (tmp_path / "log").read_text(encoding="utf-8")
    assert not [name for name in REDIRECTING if f"\n{name}=" in shown]


def test_what_reaches_git_is_a_list() -> None:
    given = {"GIT_CONFIG_COUNT": "1", "GIT_CONFIG_KEY_0": "a.b", "GIT_CONFIG_VALUE_0": "c", "GIT_SSL_CAINFO": "ca"}
    strange = dict.fromkeys((*REDIRECTING, "GIT_FUTURE", "GIT_CONFIG"), "x")
    assert {name for name in fetch_environ({**given, **strange}) if name.startswith("GIT_")} == set(given)
    assert without_repository({**given, **strange}) == given


ADDRESSES = (
    "--upload-pack=touch {mark}; git-upload-pack",
    "ext::sh -c touch% {mark}",
    "fd::17/x",
    "ssh://-oProxyCommand=touch {mark}/x",
    "ssh://a@-oProxyCommand=x/y",
    "-oProxyCommand=touch {mark}:x",
    "a@-oProxyCommand=x:y",
    "ftp://example.org/a",
    "http://example.org/a.git",
    "git://example.org/a.git",
    "https://example.org/a\n.git",
    "",
)


@pytest.mark.parametrize("address", ADDRESSES)
def test_an_address_runs_no_program(address: str, tmp_path: Path) -> None:
    mark = tmp_path / "mark"
    with pytest.raises((UsageError, SourceError)):
        resolve_ref(address.format(mark=mark), "main", environ=fetch_environ(os.environ))
    recipe = as_yaml(find_recipe("v2.6.0"))
    given = f"repository: {json.dumps(address.format(mark=mark))}"
    copy = tmp_path / "v2.6.0.yaml"
    copy.write_text(
        "\n".join(f"  {given}" if "repository:" in line else line for line in recipe.splitlines()), encoding="utf-8"
    )
    assert main("matrix", [str(copy)]) == 2
    assert main("build_wheel", ["v2.6.0", f"--repo={address.format(mark=mark)}", "--ref", "main", "--dry-run"]) in (
        2,
        3,
    )
    assert not mark.exists()


@pytest.mark.parametrize("ref", ["--upload-pack=touch x", "-x", "a..b", "a b", "a@{1}", "a:b", "a\n"])
def test_a_ref_is_no_option(ref: str, tmp_path: Path) -> None:
    repository(tmp_path / "tree", {"a": "a"})
    with pytest.raises(UsageError, match="is not a branch"):
        resolve_ref(str(tmp_path / "tree"), ref, environ=fetch_environ(os.environ))


def test_addresses_that_are_taken(tmp_path: Path) -> None:
    for text in (
        "https://github.com/a/b.git",
        "ssh://git@host/a",
        "git@github.com:a/b.git",
        "file:///a/b",
        "/a/b",
        "../b",
    ):
        assert address_fault(text) is None, text
    commit = repository(tmp_path / "tree", {"a": "a"})
    assert resolve_ref(str(tmp_path / "tree"), "main", environ=fetch_environ(os.environ)) == commit


@pytest.mark.parametrize("url", ["--upload-pack=touch mark", "ext::touch mark", "ftp://example.org/x"])
def test_a_submodules_address_runs_no_program(url: str, tmp_path: Path) -> None:
    below = tmp_path / "below"
    commit = repository(below, {"b": "b"})
    root = tmp_path / "tree"
    repository(root, {".gitmodules": f'[submodule "x"]\n\tpath = x\n\turl = {url}\n'})
    run_git(root, "update-index", "--add", "--cacheinfo", f"160000,{commit},x")
    run_git(root, "commit", "-q", "-m", "evil")
    with pytest.raises(SourceError, match="submodule x"):
        fetch_source(
            repository=str(root),
            commit=run_git(root, "rev-parse", "HEAD"),
            tag=None,
            destination=tmp_path / "out",
            cache=tmp_path / "cache",
            environ=fetch_environ(os.environ),
            log=tmp_path / "log",
            reporter=SilentReporter(),
        )
    assert not (tmp_path / "mark").exists()


def test_a_line_without_an_end_is_read_in_linear_time(tmp_path: Path) -> None:
    def cost(megabytes: int) -> float:
        """Return our own CPU seconds: what is copied again for each piece would cost sixteen times as much for four."""
        program = f"import sys; [sys.stdout.write('x' * (1 << 20)) for _ in range({megabytes})]"
        log, began = tmp_path / f"log{megabytes}", time.process_time()
        run_logged(Command(argv=(sys.executable, "-c", program)), log=log)
        assert log.stat().st_size > megabytes << 20
        return time.process_time() - began

    assert cost(64) < 10 * cost(16)
