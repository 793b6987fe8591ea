"""clean: shows all that is ours, removes what is named, and nothing else."""

from __future__ import annotations

import json
import os
import re
import time
from pathlib import Path

import pytest
from mps_build import cli
from mps_build.common.workspace import CHECKOUT, Workspace
from mps_build.host.disk_usage import CACHE_FOLDERS


@pytest.fixture
def places(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("MPS_BUILD_WORK", str(tmp_path / "work"))
    monkeypatch.setenv("MPS_BUILD_CACHE", str(tmp_path / "cache"))
    for name in ("work/v2.6.0/receipts", "work/v2.7.1/receipts", "work/mine", "cache/git", "cache/other"):
        (tmp_path / name).mkdir(parents=True)
        (tmp_path / name / "file").write_bytes(b"x" * 10_000)
    monkeypatch.setattr("mps_build.commands.clean.CHECKOUT", tmp_path)
    for name in ("doctor", "not-an-environment"):
        (tmp_path / ".nox" / name).mkdir(parents=True)
    (tmp_path / ".nox" / "doctor" / "pyvenv.cfg").write_bytes(b"x" * 40_000)
    return tmp_path


def _clean(places: Path, *arguments: str) -> tuple[int, dict[str, object]]:
    answer = places / "answer.json"
    return cli.main("clean", [*arguments, "--json", str(answer)]), json.loads(answer.read_text())


def test_without_a_name_nothing_is_removed(places: Path) -> None:
    status, document = _clean(places)

    assert status == 0
    assert document["freed_bytes"] == 0
    assert (places / "work/v2.6.0").is_dir()


def test_what_is_named_goes_and_what_is_not_ours_stays(places: Path) -> None:
    assert _clean(places, "all")[0] == 0

    left = sorted(str(path.relative_to(places)) for path in places.glob("*/*"))
    assert left == [".nox/not-an-environment", "cache/other", "work/mine"]


def test_a_dry_run_names_what_it_would_free(places: Path) -> None:
    status, document = _clean(places, "v2.6.0", "--dry-run")

    assert (status, document["chosen"]) == (0, [str(places / "work/v2.6.0")])
    assert (places / "work/v2.6.0").is_dir()


def test_only_what_was_not_used_for_so_long_goes(places: Path) -> None:
    old = time.time() - 20 * 86400
    for path in [places / "work/v2.6.0", *(places / "work/v2.6.0").rglob("*")]:
        os.utime(path, (old, old))

    _clean(places, "work", "--older-than", "14")

    assert not (places / "work/v2.6.0").exists()
    assert (places / "work/v2.7.1").is_dir()


def test_a_tree_that_a_build_holds_is_left_alone(places: Path) -> None:
    with Workspace(root=places / "work/v2.6.0").held():
        assert _clean(places, "v2.6.0")[0] == 18
    assert (places / "work/v2.6.0").is_dir()


def test_an_unknown_name_is_refused(places: Path) -> None:
    assert _clean(places, "v9.9.9")[0] == 2


def test_environments_are_counted_and_the_command_that_frees_most_is_last(
    places: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    assert cli.main("clean", []) == 0
    command = capsys.readouterr().out.splitlines()[-1].split("  ")[0].removeprefix("frees most: nox -s clean -- ")
    assert command == "doctor"

    monkeypatch.setattr("sys.prefix", str(places / ".nox" / "doctor"))
    assert cli.main("clean", [command]) == 2  # the one that runs this command stays


def test_every_folder_that_we_make_in_the_cache_is_counted() -> None:
    sources = (CHECKOUT / "scripts").rglob("*.py")
    named = {name for path in sources for name in re.findall(r'cache_folder\(\) / "([^"]+)"', path.read_text("utf-8"))}

    assert "simulation" in named
    assert named <= set(CACHE_FOLDERS)
