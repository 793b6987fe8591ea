"""The sample, built whole: what independent programs say of the wheel, and that its bytes do not depend on the place.

Slow: the first build on a machine fetches zig and lets it build its runtime; both stay in the cache.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
import shutil
import struct
import sys
import zipfile
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from mps_build.common.process import Command, capture
from mps_build.common.recipe.catalogue import find_recipe, recipes_root
from mps_build.common.workspace import cache_folder
from mps_build.wheel_build.zig.toolchain import cross_toolchain
from processes import entry
from processes import environ as entry_environ

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(sys.platform == "darwin", reason="this is about the wheel that zig makes"),
]

LIBRARY = "mps_build_sample/lib/libsample_core.dylib"
CORE_FOUNDATION = "/System/Library/Frameworks/CoreFoundation.framework/Versions/A/CoreFoundation"
ABI = f"cp3{sys.version_info[1]}"
BINDING = f"mps_build_sample/_C.cpython-3{sys.version_info[1]}-darwin.so"


@dataclass(frozen=True, slots=True, kw_only=True)
class Built:
    """One build: where it worked, the wheel unpacked, and what it reported."""

    work: Path
    wheel: Path
    files: Path
    document: dict[str, Any]

    @property
    def python(self) -> Path:
        return next((self.work / "sample" / "environments").iterdir()) / "bin" / "python"


def _build(root: Path) -> Built:
    wheelhouse, answer = root / "wheelhouse", root / "answer.json"
    version = f"{sys.version_info[0]}.{sys.version_info[1]}"
    argv = entry("build_wheel", "sample", "--python", version)
    command = Command(
        argv=(*argv, "--wheelhouse", str(wheelhouse), "--json", str(answer)),
        environ=entry_environ(MPS_BUILD_WORK=str(root / "work")),
    )
    ran = capture(command, timeout_seconds=900)
    assert ran.ok, ran.stdout[-4000:] + ran.stderr[-2000:]
    (wheel,) = wheelhouse.glob("*.whl")
    files = root / "unpacked"
    with zipfile.ZipFile(wheel) as archive:
        archive.extractall(files)
    return Built(work=root / "work", wheel=wheel, files=files, document=json.loads(answer.read_text()))


@pytest.fixture(name="built", scope="module")
def _built(tmp_path_factory: pytest.TempPathFactory) -> Built:
    return _build(tmp_path_factory.mktemp("first"))


def _say(program: str, *arguments: str) -> str:
    found = next(filter(None, (shutil.which(f"{program}{suffix}") for suffix in ("", "-19", "-16", "-14"))), None)
    if found is None:
        pytest.skip(f"{program} is not installed (Debian: apt install llvm file)")
    answer = capture(Command(argv=(found, *arguments)))
    assert answer.ok, answer.stderr
    return answer.stdout


def test_the_wheel_is_named_for_this_python_and_macos_11_on_arm64(built: Built) -> None:
    assert built.wheel.name == f"mps_build_sample-1.0.0-{ABI}-{ABI}-macosx_11_0_arm64.whl"
    metadata = (built.files / "mps_build_sample-1.0.0.dist-info" / "WHEEL").read_text()
    assert f"\nTag: {ABI}-{ABI}-macosx_11_0_arm64\n" in metadata
    assert metadata.count("Tag:") == 1


def test_the_wheel_names_the_commit_that_the_recipe_pins(built: Built) -> None:
    assert (
        f'git_version = "{find_recipe("sample").commit}"'
        in (built.files / "mps_build_sample" / "version.py").read_text()
    )


def test_the_receipt_says_that_zig_cross_built_it(built: Built) -> None:
    receipt = next(built.wheel.parent.glob("*.receipt.json")).read_text()
    assert '"cross": "zig"' in receipt


@pytest.mark.parametrize("name", [LIBRARY, BINDING])
def test_file_and_llvm_say_that_it_is_thin_arm64(built: Built, name: str) -> None:
    path = str(built.files / name)

    assert "Mach-O 64-bit arm64 dynamically linked shared library" in _say("file", path)
    assert _say("llvm-lipo", "-archs", path).split() == ["arm64"]


@pytest.mark.parametrize(
    ("name", "install_name", "rpath", "dependencies"),
    [
        (
            LIBRARY,
            "@rpath/libsample_core.dylib",
            "@loader_path",
            {"/usr/lib/libSystem.B.dylib", "/usr/lib/libc++.1.dylib", "/usr/lib/libobjc.A.dylib", CORE_FOUNDATION},
        ),
        (
            BINDING,
            f"@rpath/{Path(BINDING).name}",
            "@loader_path/lib",
            {"/usr/lib/libSystem.B.dylib", "@rpath/libsample_core.dylib"},
        ),
    ],
)
def test_llvm_objdump_agrees_on_target_names_and_signature(
    built: Built, name: str, install_name: str, rpath: str, dependencies: set[str]
) -> None:
    commands = _commands(_say("llvm-objdump", "--macho", "--private-headers", str(built.files / name)))

    (version,) = commands["LC_BUILD_VERSION"]
    assert (version["platform"], version["minos"]) == ("macos", "11.0")
    assert [each["name"] for each in commands["LC_ID_DYLIB"]] == [install_name]
    assert [each["path"] for each in commands["LC_RPATH"]] == [rpath]
    assert {each["name"] for each in commands["LC_LOAD_DYLIB"]} == dependencies
    (signature,) = commands["LC_CODE_SIGNATURE"]
    assert int(signature["dataoff"]) + int(signature["datasize"]) == (built.files / name).stat().st_size


def test_the_mps_half_is_inside_its_frameworks_weak_and_its_shader_as_source(built: Built) -> None:
    path = built.files / LIBRARY
    commands = _commands(_say("llvm-objdump", "--macho", "--private-headers", str(path)))
    weak = {each["name"].rpartition("/")[2] for each in commands["LC_LOAD_WEAK_DYLIB"]}

    assert weak == {"Foundation", "Metal", "MetalPerformanceShaders", "MetalPerformanceShadersGraph"}
    assert b"newComputePipelineStateWithFunction:error:\0" in path.read_bytes(), "the selectors of the .mm"
    assert b"kernel void scale(" in path.read_bytes()


@pytest.mark.parametrize("name", [LIBRARY, BINDING])
def test_what_dyld_asks_of_an_image_linked_against_the_newest_sdk_is_there(built: Built, name: str) -> None:
    """zig puts its own newest SDK on record, so that dyld's newest rules apply.

    https://github.com/apple-oss-distributions/dyld/blob/main/mach_o/Policy.cpp
    """
    commands = _commands(_say("llvm-objdump", "--macho", "--private-headers", str(built.files / name)))

    segments = {each["segname"]: each for each in commands["LC_SEGMENT_64"]}
    read_only = 0x10
    assert len(commands["LC_UUID"]) == 1
    assert segments["__TEXT"]["initprot"] == "r-x"
    assert segments["__LINKEDIT"]["initprot"] == "r--"
    assert int(segments["__DATA_CONST"]["flags"].split()[0], 16) & read_only
    assert len(commands["LC_RPATH"]) == len({each["path"] for each in commands["LC_RPATH"]})


@pytest.mark.parametrize("name", [LIBRARY, BINDING])
def test_every_page_has_the_hash_that_was_signed(built: Built, name: str) -> None:
    """Read here by hand (cs_blobs.h), apart from the audit's own reader; LC_CODE_SIGNATURE's place is llvm's word."""
    data = (built.files / name).read_bytes()
    (signature,) = _commands(_say("llvm-objdump", "--macho", "--private-headers", str(built.files / name)))[
        "LC_CODE_SIGNATURE"
    ]
    blob = data[int(signature["dataoff"]) :]
    magic, _, count, slot, offset = struct.unpack_from(">5I", blob)
    assert (f"{magic:x}", count, slot) == ("fade0cc0", 1, 0)  # one blob, the code directory: no certificate
    directory = blob[offset:]
    magic, _, _, flags, hashes, _, _, slots, limit, hash_size, hash_type, _, page_shift = struct.unpack_from(
        ">9I4B", directory
    )

    pages = [data[at : min(at + (1 << page_shift), limit)] for at in range(0, limit, 1 << page_shift)]

    ad_hoc = 0x2
    assert f"{magic:x}" == "fade0c02"
    assert flags & ad_hoc
    assert (hash_size, hash_type) == (32, 2)
    assert limit == int(signature["dataoff"])
    assert len(pages) == slots
    signed = directory[hashes : hashes + slots * hash_size]
    assert b"".join(hashlib.sha256(page).digest() for page in pages) == signed


def test_no_member_holds_a_path_of_this_machine(built: Built) -> None:
    places = [str(built.work), str(Path.home()), "/site-packages/", str(Path(sys.base_prefix))]

    holding = {
        str(path.relative_to(built.files)): place
        for path in built.files.rglob("*")
        if path.is_file()
        for place in places
        if place.encode() in path.read_bytes()
    }

    assert holding == {}


def test_another_folder_gives_the_same_bytes(built: Built, tmp_path: Path) -> None:
    folder = tmp_path / "another folder, with blanks ü"
    folder.mkdir()
    again = _build(folder)

    assert again.wheel.name == built.wheel.name
    assert again.wheel.read_bytes() == built.wheel.read_bytes()


def test_the_same_source_built_for_this_machine_computes_right(built: Built, tmp_path: Path) -> None:
    if not shutil.which("cc"):
        pytest.skip("no compiler for this machine")
    source, installed = built.work / "sample" / "source", tmp_path / "installed"
    environ = {"PATH": f"{built.python.parent}{os.pathsep}{os.environ['PATH']}", "LC_ALL": "C"}

    def run(*argv: str) -> str:
        answer = capture(Command(argv=argv, environ=environ), timeout_seconds=300)
        assert answer.ok, answer.stdout + answer.stderr
        return answer.stdout

    options = ("-DCMAKE_BUILD_TYPE=Release", f"-DPython_EXECUTABLE={built.python}")
    run("cmake", "-GNinja", "-S", str(source), "-B", str(tmp_path / "build"), *options)
    run("cmake", "--build", str(tmp_path / "build"))
    run("cmake", "--install", str(tmp_path / "build"), "--prefix", str(installed))
    shutil.copytree(source / "mps_build_sample", installed / "mps_build_sample", dirs_exist_ok=True)
    environ["PYTHONPATH"] = str(installed)

    said = run(str(built.python), "-m", "mps_build_sample")

    assert said.splitlines()[-2:] == ["GPU: not built in", "right"]


@pytest.mark.parametrize(("metal_exit", "can_compile"), [(0, "YES"), (1, "NO")])
def test_with_a_stub_sdk_the_gate_opens_and_the_metal_half_joins_the_build(
    built: Built, tmp_path: Path, metal_exit: int, can_compile: str
) -> None:
    """Only configure, with another xcrun than the toolchain's own: one that has a Metal compiler, too."""
    folder, build = tmp_path / "cross", tmp_path / "build"
    toolchain = cross_toolchain(
        python=built.python, folder=folder, cache=cache_folder() / "zig", deployment_target="11.0"
    )
    for root in (folder, folder / "sdk"):
        (root / "System/Library/Frameworks/MetalPerformanceShadersGraph.framework").mkdir(parents=True, exist_ok=True)
    _write_xcrun(tmp_path / "bin" / "xcrun", sdk=folder / "sdk", metal_exit=metal_exit)
    path = os.pathsep.join([str(tmp_path / "bin"), str(built.python.parent), os.environ["PATH"]])
    environ = {**toolchain.variables, "PATH": path, "LC_ALL": "C", "USE_MPS": "1"}
    source = recipes_root() / "sample"

    configured = capture(
        Command(argv=("cmake", "-GNinja", "-S", str(source), "-B", str(build)), environ=environ), timeout_seconds=300
    )
    steps = capture(Command(argv=("ninja", "-C", str(build), "-t", "commands", "all"), environ=environ)).stdout

    assert configured.ok, configured.stderr
    assert "-- sdk version: 15.2, mps supported: ON\n-- MPSGraph framework found\n" in configured.stdout
    assert "--   USE_MPS               : 1\n" in configured.stdout
    assert f"--   CAN_COMPILE_METAL     : {can_compile}\n" in configured.stdout
    assert "-x objective-c++" in steps
    assert "-weak_framework MetalPerformanceShadersGraph" in steps
    assert ("-sectcreate" in steps) == (metal_exit == 0)
    assert ("SAMPLE_JIT_COMPILE_SHADERS" in steps) == (metal_exit != 0)


@pytest.mark.parametrize("define", ["AHEAD_OF_TIME", "SAMPLE_JIT_COMPILE_SHADERS"])
def test_the_objective_c_file_compiles_against_stub_headers(built: Built, tmp_path: Path, define: str) -> None:
    """Grammar, types and reference counting of the half nobody has run; Apple's own headers may still differ."""
    source, headers = recipes_root() / "sample", Path(__file__).parents[1] / "fixtures" / "apple_headers"
    generate = (sys.executable, str(source / "tools" / "generate.py"))
    shader = ("--shader", str(source / "csrc" / "mps" / "scale.metal"), "--output", str(tmp_path / "scale_source.h"))
    assert capture(Command(argv=(*generate, *shader))).ok
    toolchain = cross_toolchain(
        python=built.python, folder=tmp_path / "cross", cache=cache_folder() / "zig", deployment_target="11.0"
    )
    compiler = Path(toolchain.variables["CMAKE_TOOLCHAIN_FILE"]).parent / "c++"
    options = ("-x", "objective-c++", "-std=c++17", "-fobjc-arc", "-Wall", "-Wextra", "-Werror", "-DUSE_MPS")
    places = (f"-I{headers}", f"-I{source / 'include'}", f"-I{tmp_path}")
    files = ("-c", str(source / "csrc" / "mps" / "scale.mm"), "-o", str(tmp_path / "scale.o"))

    answer = capture(Command(argv=(str(compiler), *options, f"-D{define}", *places, *files)), timeout_seconds=300)

    assert answer.ok, answer.stderr
    assert (tmp_path / "scale.o").stat().st_size > 0


def _write_xcrun(path: Path, *, sdk: Path, metal_exit: int) -> None:
    path.parent.mkdir(parents=True)
    path.write_text(
        "#!/bin/sh\n"
        'case "$*" in\n'
        "  *--show-sdk-version) echo 15.2 ;;\n"
        f"  *--show-sdk-path) echo '{sdk}' ;;\n"
        f'  metal*) echo "xcrun: error: unable to find utility metal" >&2; exit {metal_exit} ;;\n'
        "esac\n"
    )
    path.chmod(0o755)


def _commands(text: str) -> dict[str, list[dict[str, str]]]:
    """Return the load commands of llvm-objdump's listing, fields by name; a segment's sections are left out."""
    found: dict[str, list[dict[str, str]]] = {}
    for block in re.split(r"^Load command \d+\n", text, flags=re.MULTILINE)[1:]:
        fields: dict[str, str] = {}
        for line in re.split(r"^Section\n", block, flags=re.MULTILINE)[0].splitlines():
            name, _, value = line.strip().partition(" ")
            fields.setdefault(name, value.strip().removesuffix(")").split(" (offset")[0])
        found.setdefault(fields["cmd"], []).append(fields)
    return found
