"""What lies in a cache may be damaged: it is made again, never used unread; a full disk is said as what it is."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from mps_build.common.environment import fetch_environ
from mps_build.common.errors import DiskFull, disk_full
from mps_build.common.git import answer, git
from mps_build.common.recipe.catalogue import find_recipe, recipes_root
from mps_build.common.recipe.embedded_source import EmbeddedRepositories, materialise
from mps_build.common.recipe.locks import Lock
from mps_build.common.reporting import SilentReporter
from mps_build.wheel_build.steps.create_environment import create_environment
from mps_build.wheel_build.zig.toolchain import check_seal, drop_made, seal


def embedded(place: Path) -> EmbeddedRepositories:
    return materialise(recipes_root() / "sample", place, expected=find_recipe("sample").commit)


def _an_object(repository: Path) -> Path:
    return max(
        (path for path in (repository / "objects").rglob("*") if path.is_file()), key=lambda path: path.stat().st_size
    )


def _cut_an_object(repository: Path) -> None:
    path = _an_object(repository)
    path.chmod(0o644)
    path.write_bytes(path.read_bytes()[:20])


def _turn_a_bit(repository: Path) -> None:
    path = _an_object(repository)
    data = bytearray(path.read_bytes())
    data[len(data) // 2] ^= 1
    path.chmod(0o644)
    path.write_bytes(data)


def _lose_an_object(repository: Path) -> None:
    _an_object(repository).unlink()


def _lose_head(repository: Path) -> None:
    (repository / "HEAD").unlink()


def _other_config(repository: Path) -> None:
    (repository / "config").write_text("[core]\n\tbare = false\n", encoding="utf-8")


def _garbage_config(repository: Path) -> None:
    (repository / "config").write_bytes(b"\0\xff")


@pytest.mark.parametrize(
    "damage", [_cut_an_object, _turn_a_bit, _lose_an_object, _lose_head, _other_config, _garbage_config]
)
def test_a_damaged_embedded_source_is_made_again(damage: Callable[[Path], None], tmp_path: Path) -> None:
    place = tmp_path / "embedded" / "sample"
    made = embedded(place)
    damage(made.url)

    again = embedded(place)

    environ = fetch_environ(os.environ)
    answer(git("clone", "-q", "--", str(again.url), str(tmp_path / "clone"), environ=environ))
    assert answer(git("rev-parse", "HEAD", cwd=tmp_path / "clone", environ=environ)) == made.commit


def test_a_file_in_the_place_of_the_embedded_source_is_replaced(tmp_path: Path) -> None:
    place = tmp_path / "embedded" / "sample"
    place.parent.mkdir()
    place.write_text("x", encoding="utf-8")
    assert embedded(place).url.is_dir()


def test_an_embedded_source_that_is_whole_stays(tmp_path: Path) -> None:
    place = tmp_path / "embedded" / "sample"
    before = (embedded(place).url / "HEAD").stat().st_ino
    assert (embedded(place).url / "HEAD").stat().st_ino == before


def test_a_full_disk_while_the_environment_is_made_is_exit_19(tmp_path: Path) -> None:
    fake = tmp_path / "python"
    text = "ERROR: Could not install packages due to an OSError: [Errno 28] No space left on device: '/x/y.whl'"
    fake.write_text(f'#!/bin/sh\necho "{text}"\nexit 1\n', encoding="utf-8")
    fake.chmod(0o755)
    with pytest.raises(DiskFull) as error:
        create_environment(
            interpreter=fake,
            lock=Lock(name="lock", text="a==1 --hash=sha256:00\n"),
            destination=tmp_path / "venv",
            backend=tmp_path / "backend",
            cache=tmp_path / "cache",
            environ=fetch_environ(os.environ),
            log=tmp_path / "log",
            reporter=SilentReporter(),
        )
    assert error.value.exit_code == 19
    assert "No space left on device" in str(error.value)


def test_other_failures_are_no_full_disk() -> None:
    assert disk_full("ERROR: No matching distribution found for a", during="x") is None
    assert disk_full("fatal: write error: Disk quota exceeded", during="x") is not None


def zig_cache(folder: Path) -> Path:
    for name, text in {
        "o/1/libc++.a": "a",
        "o/2/x.o": "b",
        "o/2/x.txt": "c",
        "h/1.txt": "d",
        "zig-0.1/zig": "e",
    }.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text, encoding="utf-8")
    seal(folder)
    return folder


def _change(cache: Path) -> None:
    (cache / "o/1/libc++.a").write_text("A", encoding="utf-8")


def _remove(cache: Path) -> None:
    (cache / "o/2/x.o").unlink()


def _link(cache: Path) -> None:
    (cache / "o/2/x.o").unlink()
    (cache / "o/2/x.o").symlink_to(sys.executable)


def _spoil_the_seal(cache: Path) -> None:
    (cache / "outputs.sha256.json").write_text("[" * 100_000, encoding="utf-8")


@pytest.mark.parametrize("damage", [_change, _remove, _link, _spoil_the_seal])
def test_a_damaged_cache_of_zig_is_seen_and_dropped(damage: Callable[[Path], None], tmp_path: Path) -> None:
    cache = zig_cache(tmp_path / "zig")
    assert check_seal(cache) == ()
    damage(cache)
    assert check_seal(cache)
    drop_made(cache)
    assert check_seal(cache) == ()
    assert sorted(path.name for path in cache.iterdir()) == ["zig-0.1"]


def test_what_zig_made_since_is_no_damage(tmp_path: Path) -> None:
    cache = zig_cache(tmp_path / "zig")
    (cache / "o/3").mkdir()
    (cache / "o/3/new.a").write_text("n", encoding="utf-8")
    assert check_seal(cache) == ()
