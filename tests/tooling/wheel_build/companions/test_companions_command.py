"""`build_companions` and `rehearse --companions`: what is refused and when, a dry run, a failed build explained."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest
from macs import recorded_mac
from mps_build.cli import main
from mps_build.common.errors import AuditRejected, BuildEnvironmentError, CompileError, DiskFull
from mps_build.common.process import Command, capture
from mps_build.host.triage import explain
from mps_build.wheel_build.companions import smoke
from mps_build.wheel_build.failure import explained
from mps_build.wheel_build.rehearsal.companions import Loads, check_libraries, complete_torch, faults_of
from small_wheels import RECIPE, torch_wheel


def test_a_failed_build_is_reported_with_its_cause_and_a_disk_that_a_compiler_met_full_as_such(tmp_path: Path) -> None:
    log = tmp_path / "compile.log"
    log.write_text("building\nvision.cpp:5:10: fatal error: 'torch/types.h' file not found\n")
    error = CompileError("the build failed (exit 1)", hint="see the log")

    error_of = explained(error, log, release=RECIPE.release, hint="next: fix it", document={"recipe": "v2.6.0"})

    assert "fatal error: 'torch/types.h' file not found" in str(error_of) and error_of.hint == "next: fix it"
    assert error_of.document["recipe"] == "v2.6.0" and error_of.document["triage"]["first_error"]["line"] == 2
    log.write_text("fatal error: error writing x.o: No space left on device\n")
    assert isinstance(explained(error, log, release=None), DiskFull)
    assert explained(error, tmp_path / "no.log", release=None) is error


@pytest.mark.parametrize(
    ("after", "first"),
    [
        ("a.cpp:1:2: error: no type named 'X'\n", "a.cpp:1:2: error: no type named 'X'"),
        ("FAILED: a.o\nninja: build stopped: subcommand failed.\n", "FAILED: a.o"),
        ("", "fatal: not a git repository"),
    ],
)
def test_a_question_to_git_that_found_no_repository_is_not_the_first_error_unless_it_is_the_only_one(
    after: str, first: str
) -> None:
    found = explain(f"fatal: not a git repository (or any of the parent directories): .git\n{after}").first_error

    assert found is not None and found.text.startswith(first)


def test_a_linux_companion_may_load_torch_and_the_system_and_nothing_else() -> None:
    members = ["torchaudio/lib/libtorchaudio.so", "torchaudio/lib/_torchaudio.so"]
    right = {
        members[0]: Loads(needed=("libc10.so.2.6", "libtorch_cpu.so.2.6", "libstdc++.so.6", "libc.so.6"), search=()),
        members[1]: Loads(
            needed=("libtorchaudio.so", "libtorch_python.so", "ld-linux-x86-64.so.2"), search=("$ORIGIN",)
        ),
    }

    assert faults_of(members, right) == ()
    assert faults_of(members, {members[0]: Loads(needed=("libc.so.6",), search=())}) == (
        "no library of it loads torch's",
    )
    strange = faults_of(
        members, {**right, "x.so": Loads(needed=("libpng16.so.16",), search=("/build/venv/torch/lib",))}
    )
    assert strange == (
        "x.so: loads libpng16.so.16, which is neither torch's nor the system's",
        "x.so: searches /build/venv/torch/lib",
    )
    assert faults_of([*members, "torchaudio/lib/libtorch_cpu.so"], right) == (
        "torchaudio/lib/libtorch_cpu.so: is torch's own library",
    )


def test_a_split_built_torch_is_completed_and_what_it_brought_stays(tmp_path: Path) -> None:
    headers, site = tmp_path / "headers", tmp_path / "site"
    for place, text in ((headers, "Debian's"), (site / "torch" / "include", "the wheel's")):
        (place / "torch").mkdir(parents=True)
        (place / "torch" / "library.h").write_text(text)
        (place / "ATen").mkdir()
        (place / "ATen" / "Config.h").write_text(text)
    (headers / "torch" / "types.h").write_text("Debian's")
    (site / "torch" / "lib").mkdir()
    (site / "torch" / "lib" / "libc10.so.2.6").write_text("")

    for _ in range(2):
        complete_torch(site, headers)

    torch = site / "torch"
    assert (torch / "include" / "torch" / "library.h").read_text() == "the wheel's"
    assert (torch / "include" / "torch" / "types.h").read_text() == "Debian's"
    assert (torch / "include" / "ATen" / "Config.h").read_text() == "Debian's", (
        "libtorch is Debian's, and so is what it is"
    )
    assert (torch / "lib" / "libc10.so").resolve() == (torch / "lib" / "libc10.so.2.6")
    assert "add_library" in (torch / "share" / "cmake" / "Torch" / "TorchConfig.cmake").read_text()


@pytest.mark.skipif(sys.platform == "darwin", reason="a Mac may build it")
def test_a_host_that_cannot_build_the_recipe_says_every_reason_at_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("MPS_BUILD_WORK", str(tmp_path / "work"))

    code = main("build_companions", ["v2.6.0", "--json", str(tmp_path / "answer.json")])

    document = json.loads((tmp_path / "answer.json").read_text())
    assert code == 3 and document["cause"] == "host"
    assert {"not_macos", "xcode_missing", "metal_compiler_missing"} <= set(document["blockers"])
    assert "this host cannot build v2.6.0" in capsys.readouterr().err
    assert not (tmp_path / "work").exists()


@pytest.mark.parametrize(
    ("arguments", "code", "said"),
    [
        (["sample"], 2, "sample names no companions"),
        (["v2.6.0", "--only", "torchtext"], 2, "invalid choice"),
        (["v2.6.0", "--python", "3.7"], 2, "is not for Python 3.7"),
        (["v2.6.0", "--jobs", "0"], 2, "not a number from 1 on"),
        (["v2.6.0", "--set", "X"], 2, "is not NAME=VALUE"),
        (["v2.6.0", "--torch", "nowhere.whl"], 2, "no such file"),
        (["v9.9"], 2, "no recipe"),
    ],
)
def test_wrong_arguments_are_reported_before_the_host_is_looked_at(
    arguments: list[str], code: int, said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main("build_companions", arguments) == code

    assert said in capsys.readouterr().err


def test_a_dry_run_on_a_recorded_mac_tells_what_would_be_built(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("MPS_BUILD_WORK", str(tmp_path / "work"))
    mac = recorded_mac(tmp_path, "m3max-64gb-15.3-all-well")
    arguments = ["v2.6.0", "--torch", str(torch_wheel(tmp_path)), "--json", str(tmp_path / "answer.json")]

    code = main("build_companions", [*arguments, "--dry-run", "--host", str(mac)])

    document = json.loads((tmp_path / "answer.json").read_text())
    assert code == 0, document
    assert capsys.readouterr().out.startswith("recorded on 2026-11-01")
    assert [(each["name"], each["version"]) for each in document["companions"]] == [
        ("torchvision", "0.21.0+mps.g1eba9b3"),
        ("torchaudio", "2.6.0+mps.g1eba9b3"),
    ]
    assert document["companions"][0]["environment"]["FORCE_MPS"] == "1"
    assert not (tmp_path / "work").exists()
    assert main("build_companions", [*arguments, "--host", str(mac)]) == 2
    assert "only with --dry-run" in capsys.readouterr().err


def test_the_rehearsal_takes_a_torch_only_with_companions(capsys: pytest.CaptureFixture[str]) -> None:
    assert main("rehearse", ["v2.6.0", "--torch", "x.whl"]) == 2
    assert "add --companions" in capsys.readouterr().err


def test_the_smoke_script_is_distinguished_from_a_torch_that_is_missing(tmp_path: Path) -> None:
    script = Path(smoke.__file__)
    argv = [sys.executable, "-I", "-S", str(script), str(tmp_path / "result.json"), "torchvision"]

    ended = subprocess.run(argv, capture_output=True, text=True, check=False, env={"PATH": os.environ["PATH"]})

    assert ended.returncode != 0 and "No module named 'torch'" in ended.stderr
    assert not (tmp_path / "result.json").exists()


@pytest.mark.skipif(
    sys.platform != "linux" or not (shutil.which("cc") and shutil.which("readelf")), reason="ELF's tools are needed"
)
def test_a_library_says_what_it_loads_and_where_it_searches(tmp_path: Path) -> None:
    (tmp_path / "a.c").write_text("int a;\n")
    torch, own = tmp_path / "libtorch_cpu.so", tmp_path / "_C.so"
    flags = ("-shared", "-nostdlib", str(tmp_path / "a.c"))
    search = "-Wl,-rpath,$ORIGIN/../torch/lib:/opt/lib"
    for argv in (
        ("cc", *flags, "-Wl,-soname,libtorch_cpu.so", "-o", str(torch)),
        ("cc", *flags, search, "-Wl,--no-as-needed", str(torch), "-o", str(own)),
    ):
        assert capture(Command(argv=argv)).ok

    wheel = tmp_path / "torchaudio-2.6.0-cp312-cp312-linux_x86_64.whl"
    with zipfile.ZipFile(wheel, "w") as archive:
        archive.write(own, "torchaudio/lib/_C.so")
    with pytest.raises(AuditRejected, match="searches /opt/lib"):
        check_libraries(wheel, scratch=tmp_path / "unpacked", wrap=lambda command: command)
    with zipfile.ZipFile(wheel, "w") as archive:
        archive.writestr("torchaudio/lib/_C.so", b"no library")
    with pytest.raises(BuildEnvironmentError, match="readelf cannot read"):
        check_libraries(wheel, scratch=tmp_path / "unpacked", wrap=lambda command: command)
