"""What publish_index refuses in names and metadata, and what it points out."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from http_servers import TAG, TORCH, publish, wheel
from mps_build.cli import main

HIDDEN = {"right-to-left": "\u202e", "Hebrew": "\u05d0", "zero width": "\u200b", "filler": "\u3164", "joiner": "\u034f"}


@pytest.mark.parametrize(
    "tag", ["cp39-abi3", "cp310.cp311-abi3", "py3-none", "py2.py3-none", "cp3x-abi3", "cp3-none", "pp311-pypy311_pp73"]
)
def test_a_torch_of_no_one_python_is_refused(tag: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = wheel(tmp_path / "wheelhouse", "torch", "2.7.0", tag=f"{tag}-macosx_14_0_arm64")
    wheel(
        tmp_path / "wheelhouse", "torchvision", "0.22.0", requires=("torch==2.7.0",), tag="cp39-abi3-macosx_14_0_arm64"
    )

    assert main("publish_index", [str(path.parent), "--output", str(tmp_path / "site")]) == 2
    said = capsys.readouterr().err
    assert f"not a torch for one version of CPython (cp312-cp312, cp313-cp313t, cp312-none): {path.name}" in said
    assert "report" not in said and not (tmp_path / "site").exists()


@pytest.mark.parametrize("tag", ["cp312-cp312", "cp313-cp313t", "cp312-none"])
def test_a_torch_of_one_python_is_taken_with_companions_of_any(tag: str, tmp_path: Path) -> None:
    wheel(tmp_path / "wheelhouse", "torch", TORCH, tag=f"{tag}-macosx_14_0_arm64")
    for name, of_any in (("torchvision", "py2.py3-none"), ("torchaudio", "cp3x-abi3")):
        wheel(tmp_path / "wheelhouse", name, "1.0", requires=("torch==2.6.0",), tag=f"{of_any}-macosx_14_0_arm64")

    (found,) = publish(tmp_path / "wheelhouse")["sets"]
    assert [file.partition("-")[0] for file in found["wheels"]] == ["torch", "torchvision"]


@pytest.mark.parametrize("character", HIDDEN.values(), ids=HIDDEN.keys())
def test_a_character_that_hides_what_is_read_is_refused(
    character: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = tmp_path / "wheelhouse"
    names = {
        "its platform": {"tag": f"cp311-cp311-macosx_14_0_arm64{character}"},
        "its address": {"requires": (f"sympy @ https://example.org/{character}gnp.whl",)},
        "its marker": {"requires": (f"sympy; sys_platform == 'x{character}'",)},
    }
    for part, options in names.items():
        path = wheel(folder, "torch", TORCH, **options)  # type: ignore[arg-type]
        assert main("publish_index", [str(folder), "--output", str(tmp_path / "site")]) == 2, part
        said = capsys.readouterr().err
        assert character not in said and ascii(character)[1:-1] in said, part
        path.unlink()


def test_a_reason_is_shown_with_its_hidden_characters_as_escapes(tmp_path: Path) -> None:
    path = wheel(tmp_path / "wheelhouse", "torch", TORCH)
    publish(path.parent)
    publish(path.parent, "--yank", path.name, "--reason", "wrong \u202eresults")

    page = (tmp_path / "site" / "simple" / "torch" / "index.html").read_text(encoding="utf-8")
    assert 'data-yanked="wrong \\u202eresults"' in page


def test_a_requirement_by_address_is_pointed_out(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    needs = "sympy@ https://example.org/sympy-1.13-py3-none-any.whl"
    wheel(tmp_path / "wheelhouse", "torch", TORCH, requires=(needs, "filelock"))

    (note,) = publish(tmp_path / "wheelhouse")["notes"]
    assert note.startswith(f"torch-{TORCH}-{TAG}.whl needs sympy") and "https://example.org/sympy-1.13" in note
    assert f"warning: {note}" in capsys.readouterr().out.replace("\n", " ")


def test_without_a_folder_the_wheelhouse_is_taken(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    wheel(tmp_path / "wheelhouse", "torch", TORCH)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("mps_build.common.workspace.in_checkout", lambda: False)

    assert main("publish_index", []) == 0
    state = json.loads((tmp_path / "wheelhouse" / "index" / "index-state.json").read_text(encoding="utf-8"))
    assert list(state["published"]) == [f"torch-{TORCH}-{TAG}.whl"]


def test_the_size_of_a_small_wheel_is_not_zero(tmp_path: Path) -> None:
    wheel(tmp_path / "wheelhouse", "torch", TORCH)
    publish(tmp_path / "wheelhouse")

    page = (tmp_path / "site" / "index.html").read_text(encoding="utf-8")
    assert '<td class="number">1.0 kB</td>' in page
