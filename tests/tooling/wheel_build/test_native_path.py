"""The path that a Mac takes, from `build_wheel -- sample` to a delivered wheel, on an imitation of one.

Nothing here ran on a Mac: zig compiles, LLVM's tools stand for Apple's, and the Python only says that it is a Mac's.
"""

from __future__ import annotations

import json
import re
import subprocess
import sys
import tarfile
import zipfile
from pathlib import Path
from typing import Any

import pytest
import yaml
from macs import DEVELOPER_DIR, ImitatedMac, imitated_mac, llvm_tools
from mps_build.common import strict_yaml
from mps_build.common.process import Command, capture
from mps_build.common.recipe.catalogue import recipes_root
from mps_build.common.workspace import cache_folder
from mps_build.wheel_build.steps.finish_wheel import repair_wheel
from mps_build.wheel_build.zig.toolchain import cross_toolchain

OURS = f"{sys.version_info[0]}.{sys.version_info[1]}"
on_linux = pytest.mark.skipif(sys.platform != "linux", reason="a Mac needs no imitation")


@pytest.fixture(name="delocate", scope="session")
def _delocate(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with delocate, as pip brings it on a Mac."""
    folder = tmp_path_factory.mktemp("delocate")
    pip = [sys.executable, "-m", "pip", "install", "-q", "--disable-pip-version-check", "--target", str(folder)]
    got = subprocess.run([*pip, "delocate>=0.13"], capture_output=True, text=True, check=False)
    if got.returncode:
        pytest.skip(f"delocate is not to be had here: {got.stderr.strip()[-200:]}")
    if llvm_tools() is None:
        pytest.skip("llvm-otool, llvm-lipo or llvm-install-name-tool is missing (Debian: apt install llvm)")
    return folder


@pytest.fixture(name="recipe")
def _recipe(tmp_path: Path) -> Path:
    """The sample as a recipe of its own for a Mac without Metal: what is built is what zig can build."""
    text = (recipes_root() / "sample.yaml").read_text(encoding="utf-8")
    document: dict[str, Any] = strict_yaml.unchecked(text)
    cross = document.pop("cross")
    # zig knows its SDK below its own folder only, and not the one of the imitation: MPS stays off.
    document |= {"gate": {**cross["gate"], "use_mps": False}, "wheel": cross["wheel"]}
    document["host"]["metal_compiler"] = "unused"
    (tmp_path / "sample.yaml").write_text(yaml.safe_dump(document), encoding="utf-8")
    return tmp_path / "sample.yaml"


def _settings(folder: Path) -> list[str]:
    """zig in Apple's place, in the way a user of `build_wheel` could say it."""
    toolchain = cross_toolchain(
        python=Path(sys.executable), folder=folder, cache=cache_folder() / "zig", deployment_target="11.0"
    )
    return [word for name, value in toolchain.variables.items() for word in ("--set", f"{name}={value}")]


@on_linux
def test_a_mac_without_delocate_is_stopped_before_anything_is_made(tmp_path: Path, recipe: Path) -> None:
    mac = imitated_mac(tmp_path / "mac")

    ran = mac.run("build_wheel", str(recipe), "--python", OURS, DEVELOPER_DIR=DEVELOPER_DIR)

    assert ran.exit == 6, ran.stdout + ran.stderr
    assert "delocate" in ran.stderr and "pip install" in ran.stderr
    assert not (mac.folder / "work").exists()


@on_linux
def test_the_doctor_and_the_plan_of_a_mac(tmp_path: Path, recipe: Path) -> None:
    mac, answer = imitated_mac(tmp_path / "mac"), tmp_path / "answer.json"

    ran = mac.run("doctor", str(recipe), "--json", str(answer))

    document = json.loads(answer.read_text(encoding="utf-8"))
    assert (document["host"]["chip"], document["host"]["arch"]) == ("Apple M3 Max", "arm64"), ran.stderr
    assert document["host"]["xcode"] is None and document["host"]["xcodes"][0]["version"] == "26.5"
    assert "thermal_unknown" not in document["warnings"]
    assert any(finding["id"] == "build_python" and "arm64" in finding["found"] for finding in document["findings"])


@pytest.mark.slow
@on_linux
def test_the_sample_goes_natively_to_a_delivered_wheel(tmp_path: Path, recipe: Path, delocate: Path) -> None:
    """No Xcode is chosen for the machine; the one in /Applications is found, and is git's and delocate's too."""
    mac, answer, wheelhouse = (
        imitated_mac(tmp_path / "mac", packages=delocate),
        tmp_path / "answer.json",
        tmp_path / "wheelhouse",
    )
    words = (
        "build_wheel",
        str(recipe),
        "--python",
        OURS,
        "--wheelhouse",
        str(wheelhouse),
        *_settings(tmp_path / "zig"),
    )

    ran = mac.run(*words, "--json", str(answer), timeout_seconds=900)

    assert ran.ok, ran.stdout[-3000:] + ran.stderr[-3000:]
    document = json.loads(answer.read_text(encoding="utf-8"))
    (wheel,) = wheelhouse.glob("*.whl")
    assert re.fullmatch(r"mps_build_sample-1\.0\.0-cp3\d+-cp3\d+-macosx_11_0_arm64\.whl", wheel.name)
    assert document["wheels"][0]["verdict"] == "accepted"
    receipt = json.loads(next(wheelhouse.glob("*.receipt.json")).read_text(encoding="utf-8"))
    assert receipt["host"]["chip"] == "Apple M3 Max"
    assert receipt["environment"]["DEVELOPER_DIR"] == DEVELOPER_DIR
    assert receipt["tools"]["xcode"] == "26.5 17F42"
    called = {line.split()[0] for line in mac.calls.read_text(encoding="utf-8").splitlines()}
    assert {"otool", "install_name_tool", "codesign"} <= called
    _the_rest_of_a_first_day(mac, words, recipe)


def _the_rest_of_a_first_day(mac: ImitatedMac, words: tuple[str, ...], recipe: Path) -> None:
    """The same command again, a shell, support and clean: where the build was, in the same imitation."""
    again = mac.run(*words)
    assert again.ok and "Compile" in again.stdout, again.stderr
    settings = words[words.index("--set") :]
    inside = mac.run(
        "shell", str(recipe), "--python", OURS, *settings, "--", "sh", "-c", "echo $DEVELOPER_DIR; echo $PATH"
    )
    assert inside.ok, inside.stderr
    assert DEVELOPER_DIR in inside.stdout
    assert "/work/sample/environments/" in inside.stdout.splitlines()[-1].split(":")[0]
    bundle = mac.folder / "support.tar.gz"
    packed = mac.run("support", "--output", str(bundle))
    assert packed.ok, packed.stderr
    with tarfile.open(bundle) as archive:
        names = archive.getnames()
    assert any(name.endswith("recording.json") for name in names)
    assert any("compile_wheel" in name for name in names)
    cleaned = mac.run("clean", "work", "--yes")
    if cleaned.exit == 2:  # it asks for no --yes
        cleaned = mac.run("clean", "work")
    assert cleaned.ok, cleaned.stderr


@pytest.mark.slow
@on_linux
def test_delocate_copies_a_foreign_library_and_calls_apples_tools(tmp_path: Path, delocate: Path) -> None:
    """A wheel whose binary names a library by its path on this machine, as OpenMP's does with Homebrew."""
    mac = imitated_mac(tmp_path / "mac", packages=delocate)
    toolchain = cross_toolchain(
        python=Path(sys.executable), folder=tmp_path / "zig", cache=cache_folder() / "zig", deployment_target="11.0"
    )
    compiler = Path(toolchain.variables["CMAKE_TOOLCHAIN_FILE"]).parent / "cc"
    library, binary = tmp_path / "lib" / "libouter.dylib", tmp_path / "_inner.so"
    library.parent.mkdir()
    (tmp_path / "outer.c").write_text("int outer(void) { return 7; }\n")
    (tmp_path / "inner.c").write_text("int outer(void); int inner(void) { return outer(); }\n")
    room = "-Wl,-headerpad_max_install_names"
    made = (str(compiler), "-shared", str(tmp_path / "outer.c"), "-o", str(library), room)
    for argv in (
        (*made, f"-Wl,-install_name,{library}"),
        (str(compiler), "-shared", str(tmp_path / "inner.c"), str(library), "-o", str(binary), room),
    ):
        answer = capture(Command(argv=argv), timeout_seconds=300)
        assert answer.ok, answer.stderr
    wheel = tmp_path / "inner-1.0-cp311-cp311-macosx_11_0_arm64.whl"
    info = "inner-1.0.dist-info"
    with zipfile.ZipFile(wheel, "w") as archive:
        archive.write(binary, "inner/_inner.so")
        archive.writestr("inner/__init__.py", "")
        archive.writestr(f"{info}/METADATA", "Metadata-Version: 2.1\nName: inner\nVersion: 1.0\n")
        archive.writestr(
            f"{info}/WHEEL",
            "Wheel-Version: 1.0\nGenerator: a\nRoot-Is-Purelib: false\nTag: cp311-cp311-macosx_11_0_arm64\n",
        )
        archive.writestr(
            f"{info}/RECORD",
            f"inner/_inner.so,,\ninner/__init__.py,,\n{info}/METADATA,,\n{info}/WHEEL,,\n{info}/RECORD,,\n",
        )

    repaired = repair_wheel(
        wheel,
        python=mac.python,
        output=tmp_path / "repaired",
        environ=mac.environ(DEVELOPER_DIR=DEVELOPER_DIR),
        exclude=(),
        log=tmp_path / "log",
    )

    with zipfile.ZipFile(repaired) as archive:
        assert "inner/.dylibs/libouter.dylib" in archive.namelist()
        archive.extract("inner/_inner.so", tmp_path / "out")
    tools = llvm_tools()
    assert tools is not None
    listed = capture(Command(argv=(tools["otool"], "-L", str(tmp_path / "out/inner/_inner.so")))).stdout
    assert "@loader_path/.dylibs/libouter.dylib" in listed and str(library) not in listed
    calls = mac.calls.read_text(encoding="utf-8").splitlines()
    assert {"otool", "lipo", "install_name_tool", "codesign"} <= {line.split()[0] for line in calls}
