"""The index: what is published, kept, yanked and deleted."""

from __future__ import annotations

from datetime import date
from pathlib import Path

import pytest
from http_servers import TAG, TORCH, publish, receipt, wheel
from mps_build.cli import main
from mps_build.common.wheels.wheel_file import matched_sets, read_wheel, read_wheels
from mps_build.publish.index.state import retain


def test_files_beside_the_wheels_are_published(wheelhouse: Path, tmp_path: Path) -> None:
    publish(wheelhouse)

    names = {path.name.split(TAG)[1] for path in (tmp_path / "site" / "wheels").glob("torch-*")}

    assert names == {
        ".whl",
        ".whl.metadata",
        ".whl.receipt.json",
        ".whl.sigstore.json",
        ".whl.cdx.json",
    }
    set_folder = next((tmp_path / "site" / "sets").iterdir())
    assert (set_folder / "constraints.txt").read_text(encoding="utf-8").splitlines()[0] == f"torch=={TORCH}"
    assert (set_folder / "dependencies.txt").read_text(encoding="utf-8") == "filelock\n"


def test_links_lead_to_a_release_where_the_wheels_lie_there(wheelhouse: Path, tmp_path: Path) -> None:
    publish(wheelhouse, "--base-url", "https://example.org/releases/download/v1")

    page = (tmp_path / "site" / "simple" / "torch" / "index.html").read_text(encoding="utf-8")

    assert f'href="https://example.org/releases/download/v1/torch-{TORCH.replace("+", "%2B")}-{TAG}.whl#sha256=' in page
    assert not list((tmp_path / "site" / "wheels").glob("*.whl"))


def test_two_runs_write_the_same_site(wheelhouse: Path, tmp_path: Path) -> None:
    def everything() -> dict[str, bytes]:
        site = tmp_path / "site"
        return {str(path.relative_to(site)): path.read_bytes() for path in site.rglob("*") if path.is_file()}

    publish(wheelhouse)
    first = everything()
    publish(wheelhouse)

    assert everything() == first


def test_a_companion_of_two_torches_goes_into_no_set(wheelhouse: Path) -> None:
    wheel(wheelhouse, "torch", "2.6.0+mps.gffffff0")

    sets, notes = matched_sets(read_wheels(wheelhouse))

    assert [len(each.wheels) for each in sets] == [1, 1]
    assert len(notes) == 2
    assert "fits 2 torches" in notes[0]


def test_a_companion_of_another_python_or_torch_goes_into_no_set(wheelhouse: Path) -> None:
    wheel(wheelhouse, "torchvision", "0.22.0", requires=("torch==2.7.1",))
    wheel(wheelhouse, "torchvision", "0.21.0", requires=("torch==2.6.0",), tag="cp312-cp312-macosx_14_0_arm64")

    (set_,), notes = matched_sets(read_wheels(wheelhouse))

    assert [str(each.version) for each in set_.companions] == ["0.21.0+mps.g7af6987", "2.6.0+mps.gd883142"]
    assert all("pins no torch that is here" in note for note in notes)
    assert len(notes) == 2


def test_the_bill_of_other_wheels_is_all_faults_at_once(
    wheelhouse: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    receipt(next(wheelhouse.glob("torchaudio-*.whl")), "0" * 64)
    (wheelhouse / f"torch-9.9-{TAG}.whl").write_bytes(b"PK no zip")
    wheel(wheelhouse, "torch", "1.0").rename(wheelhouse / f"torch-1.1-{TAG}.whl")

    assert main("publish_index", [str(wheelhouse), "--output", str(tmp_path / "site")]) == 2

    said = capsys.readouterr().err
    assert "3 wheels are damaged" in said
    for part in ("does not match its receipt", "is not a zip file", "its METADATA says torch 1.0"):
        assert part in said
    assert not (tmp_path / "site").exists()


def test_a_folder_of_something_else_is_not_replaced(wheelhouse: Path, tmp_path: Path) -> None:
    (tmp_path / "precious").mkdir()
    (tmp_path / "precious" / "file").write_text("mine", encoding="utf-8")

    assert main("publish_index", [str(wheelhouse), "--output", str(tmp_path / "precious")]) == 2
    assert (tmp_path / "precious" / "file").read_text(encoding="utf-8") == "mine"


def _nightlies(folder: Path) -> Path:
    for day in ("20260901", "20260902", "20260903", "20260907", "20261119"):
        wheel(folder, "torch", f"2.16.0.dev{day}+mps.ga{day}")
    wheel(folder, "torch", "2.6.0+mps.g1eba9b3")
    return folder


def test_old_nightlies_thin_out_to_one_a_week_and_releases_stay(tmp_path: Path) -> None:
    wheels = read_wheels(_nightlies(tmp_path / "wheelhouse"))
    today = date(2026, 11, 20)

    found = retain(wheels, today=today, yanked={}, keep=("2.16.0.dev20260903+mps.ga20260903",))

    assert found.yanked == {f"torch-2.16.0.dev20260902+mps.ga20260902-{TAG}.whl": today}
    assert found.deleted == ()


def test_a_nightly_is_yanked_before_it_is_deleted(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    wheelhouse = _nightlies(tmp_path / "wheelhouse")
    (wheelhouse / f"torch-2.16.0.dev20260903+mps.ga20260903-{TAG}.whl").unlink()
    old = wheelhouse / f"torch-2.16.0.dev20260902+mps.ga20260902-{TAG}.whl"
    receipt(old, read_wheel(old).sha256)

    assert publish(wheelhouse, "--prune", "--dry-run", "--today", "2026-11-20")["yanked"]
    assert not (tmp_path / "site").exists()

    publish(wheelhouse, "--prune", "--today", "2026-11-20")
    page = (tmp_path / "site" / "simple" / "torch" / "index.html").read_text(encoding="utf-8")
    assert 'data-yanked="an old nightly' in page
    assert old.is_file()

    assert publish(wheelhouse, "--prune", "--today", "2026-12-19")["deleted"] == []
    assert publish(wheelhouse, "--prune", "--today", "2026-12-20", "--dry-run")["deleted"] == [old.name]
    assert old.is_file()
    assert publish(wheelhouse, "--prune", "--today", "2026-12-20")["deleted"] == [old.name]
    assert not list(wheelhouse.glob("*dev20260902*"))
    assert old.name not in (tmp_path / "site" / "simple" / "torch" / "index.html").read_text(encoding="utf-8")


def test_a_lost_state_is_no_licence_to_delete(wheelhouse: Path, tmp_path: Path) -> None:
    publish(wheelhouse)
    (tmp_path / "site" / "index-state.json").write_text("{", encoding="utf-8")

    assert main("publish_index", [str(wheelhouse), "--output", str(tmp_path / "site"), "--prune"]) == 2


@pytest.mark.parametrize(
    "argv", [["--base-url", "ftp://x"], ["--today", "yesterday"], ["--keep", "torch-nothing"], ["--days", "x"]]
)
def test_arguments_that_cannot_be_are_refused(wheelhouse: Path, argv: list[str]) -> None:
    assert main("publish_index", [str(wheelhouse), *argv]) == 2
