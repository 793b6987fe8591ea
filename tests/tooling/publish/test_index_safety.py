"""What an index must never do: follow a link, share a file with the wheelhouse, change a published name's bytes."""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Callable
from pathlib import Path

import pytest
from http_servers import TAG, TORCH, publish, receipt, wheel
from mps_build.cli import main
from mps_build.common.errors import RefusedForSafety, UsageError
from mps_build.common.wheels.wheel_file import BESIDE, matched_sets, read_wheel, read_wheels
from mps_build.publish.index.site import write_site
from mps_build.publish.index.state import State

NAME = f"torch-{TORCH}-{TAG}.whl"


def refused(wheelhouse: Path, *arguments: str) -> int:
    return main("publish_index", [str(wheelhouse), "--output", str(wheelhouse.parent / "site"), *arguments])


def other_bytes(wheelhouse: Path) -> str:
    """Build the torch of the wheelhouse again: the same name, other bytes, a receipt that fits; return its hash."""
    path = wheel(wheelhouse, "torch", TORCH, requires=("filelock", "sympy"))
    sha256 = hashlib.sha256(path.read_bytes()).hexdigest()
    receipt(path, sha256)
    return sha256


def everything(site: Path) -> dict[str, bytes]:
    return {str(path.relative_to(site)): path.read_bytes() for path in site.rglob("*") if path.is_file()}


def page(site: Path) -> str:
    return (site / "simple" / "torch" / "index.html").read_text(encoding="utf-8")


def test_a_linked_wheel_is_refused(wheelhouse: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (wheelhouse / NAME).rename(tmp_path / NAME)
    (wheelhouse / NAME).symlink_to(tmp_path / NAME)

    assert refused(wheelhouse) == UsageError.exit_code
    assert f"{NAME}: cannot be read: it is a symbolic link, not a file" in capsys.readouterr().err
    assert not (tmp_path / "site").exists()


@pytest.mark.parametrize("suffix", BESIDE)
@pytest.mark.parametrize("target", ["secret", "nothing"])
def test_a_link_beside_a_wheel_is_refused(
    suffix: str, target: str, wheelhouse: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "secret").write_text("a key", encoding="utf-8")
    beside = wheelhouse / f"{NAME}{suffix}"
    beside.unlink(missing_ok=True)
    beside.symlink_to(tmp_path / target)

    assert refused(wheelhouse) == UsageError.exit_code
    assert "it is a symbolic link, not a file" in capsys.readouterr().err
    assert not (tmp_path / "site").exists()


@pytest.mark.parametrize("suffix", BESIDE)
def test_a_pipe_beside_a_wheel_is_refused(suffix: str, wheelhouse: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (wheelhouse / f"{NAME}{suffix}").unlink(missing_ok=True)
    os.mkfifo(wheelhouse / f"{NAME}{suffix}")

    assert refused(wheelhouse) == UsageError.exit_code
    assert "it is a pipe, not a file" in capsys.readouterr().err


def test_a_linked_site_is_not_replaced(wheelhouse: Path, tmp_path: Path) -> None:
    (tmp_path / "real").mkdir()
    (tmp_path / "site").symlink_to("real")

    assert refused(wheelhouse) == UsageError.exit_code
    assert (tmp_path / "site").is_symlink()


def test_what_is_written_into_the_wheelhouse_later_is_not_published(wheelhouse: Path, tmp_path: Path) -> None:
    publish(wheelhouse)
    before = everything(tmp_path / "site")
    for path in wheelhouse.iterdir():
        with path.open("r+b") as file:
            file.write(b"changed")

    assert everything(tmp_path / "site") == before


def test_every_published_wheel_has_the_hash_that_its_page_tells(wheelhouse: Path, tmp_path: Path) -> None:
    publish(wheelhouse)

    files = json.loads((tmp_path / "site" / "simple" / "torch" / "index.json").read_text(encoding="utf-8"))["files"]
    for row in files:
        data = (tmp_path / "site" / "wheels" / row["filename"]).read_bytes()
        assert hashlib.sha256(data).hexdigest() == row["hashes"]["sha256"]


def _swap_for_a_link(path: Path) -> None:
    path.rename(path.with_suffix(".kept"))
    path.symlink_to(path.with_suffix(".kept"))


def _swap_for_a_pipe(path: Path) -> None:
    path.unlink()
    os.mkfifo(path)


def _swap_for_another(path: Path) -> None:
    wheel(path.parent, "torch", TORCH, requires=("sympy",))


def _change_the_receipt(path: Path) -> None:
    receipt(path, "0" * 64)


@pytest.mark.parametrize("base_url", [None, "https://example.org/"])
@pytest.mark.parametrize(
    "swap", [_swap_for_a_link, _swap_for_a_pipe, _swap_for_another, _change_the_receipt, Path.unlink]
)
def test_a_file_that_changes_between_the_check_and_the_copy_is_not_published(
    swap: Callable[[Path], None], base_url: str | None, wheelhouse: Path, tmp_path: Path
) -> None:
    wheels = read_wheels(wheelhouse)
    sets, _ = matched_sets(wheels)
    swap(wheelhouse / NAME)

    with pytest.raises(RefusedForSafety, match="changed while it was copied"):
        write_site(tmp_path / "site", wheels=wheels, sets=sets, state=State(), base_url=base_url)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["wheelhouse"]


def test_other_bytes_under_a_published_name_are_refused(
    wheelhouse: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    first = next(row["sha256"] for row in publish(wheelhouse)["wheels"] if row["file"] == NAME)
    before = everything(tmp_path / "site")
    second = other_bytes(wheelhouse)

    assert refused(wheelhouse) == 21
    said = capsys.readouterr().err
    assert f"{NAME}: published with sha256 {first}, now {second}" in said
    assert "--yank FILE" in said
    assert everything(tmp_path / "site") == before
    assert refused(wheelhouse, "--dry-run") == 21
    assert refused(wheelhouse, "--base-url", "https://example.org/") == 21


def test_a_name_that_went_from_the_pages_keeps_its_bytes(wheelhouse: Path) -> None:
    publish(wheelhouse)
    kept = (wheelhouse / NAME).read_bytes(), (wheelhouse / f"{NAME}.receipt.json").read_bytes()
    for path in wheelhouse.glob(f"{NAME}*"):
        path.unlink()
    publish(wheelhouse)

    other_bytes(wheelhouse)
    assert refused(wheelhouse) == 21
    (wheelhouse / NAME).write_bytes(kept[0])
    (wheelhouse / f"{NAME}.receipt.json").write_bytes(kept[1])
    assert refused(wheelhouse) == 0


def test_an_index_of_an_older_mps_build_is_queried_by_its_pages(wheelhouse: Path, tmp_path: Path) -> None:
    publish(wheelhouse)
    (tmp_path / "site" / "index-state.json").write_text('{"yanked": {}}', encoding="utf-8")
    other_bytes(wheelhouse)

    assert refused(wheelhouse) == 21


def test_a_withdrawn_wheel_stays_for_who_pins_it(wheelhouse: Path, tmp_path: Path) -> None:
    publish(wheelhouse)
    reported = publish(wheelhouse, "--yank", NAME, "--reason", "wrong <results>", "--today", "2026-11-20")

    assert reported["yanked"] == {NAME: "2026-11-20"}
    assert 'data-yanked="wrong &lt;results&gt;"' in page(tmp_path / "site")
    row = json.loads((tmp_path / "site" / "simple" / "torch" / "index.json").read_text(encoding="utf-8"))["files"][0]
    assert row["yanked"] == "wrong <results>"
    assert (tmp_path / "site" / "wheels" / NAME).is_file()
    for more in ((), ("--prune",), ("--yank", NAME, "--today", "2026-11-23", "--reason", "wrong <results>")):
        assert publish(wheelhouse, *more)["yanked"] == {NAME: "2026-11-20"}
        assert 'data-yanked="wrong &lt;results&gt;"' in page(tmp_path / "site")


def test_a_withdrawn_name_may_get_other_bytes(wheelhouse: Path, tmp_path: Path) -> None:
    publish(wheelhouse)
    old = read_wheel(wheelhouse / NAME).sha256
    new = other_bytes(wheelhouse)

    # What is withdrawn is what was published, whatever the folder holds by now.
    assert publish(wheelhouse, "--yank", NAME)["yanked"].keys() == {NAME}
    assert read_wheel(tmp_path / "site" / "wheels" / NAME).sha256 == old
    assert "data-yanked" in page(tmp_path / "site")

    assert publish(wheelhouse)["yanked"] == {}
    assert read_wheel(tmp_path / "site" / "wheels" / NAME).sha256 == new
    assert "data-yanked" not in page(tmp_path / "site")


def test_bytes_that_are_nowhere_cannot_be_withdrawn(
    wheelhouse: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    publish(wheelhouse, "--base-url", "https://example.org/")
    other_bytes(wheelhouse)
    assert refused(wheelhouse, "--yank", NAME) == UsageError.exit_code
    assert "put the published file into the folder" in capsys.readouterr().err

    assert refused(wheelhouse, "--yank", "torch-9.whl") == UsageError.exit_code
    assert "--yank torch-9.whl: no such file was published" in capsys.readouterr().err


def test_a_name_that_was_pruned_is_free_again(tmp_path: Path) -> None:
    wheelhouse = tmp_path / "wheelhouse"
    for day in ("20260901", "20260902", "20261119"):
        wheel(wheelhouse, "torch", f"2.16.0.dev{day}")
    old = "2.16.0.dev20260902"
    publish(wheelhouse, "--prune", "--today", "2026-10-20")
    publish(wheelhouse, "--prune", "--today", "2026-11-20")
    assert not list(wheelhouse.glob(f"*{old}*"))

    wheel(wheelhouse, "torch", old, requires=("filelock",))
    assert refused(wheelhouse) == 0
