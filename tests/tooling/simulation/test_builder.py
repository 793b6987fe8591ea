"""What a simulation is built from: releases, patches, the ninja file, the host, what is kept."""

from __future__ import annotations

import hashlib
import sys
import tarfile
from pathlib import Path

import pytest
from mps_build.common.errors import BuildEnvironmentError, DiskFull, HostError, SourceError
from mps_build.common.reporting import SilentReporter
from mps_build.simulation.builder import packages, source
from mps_build.simulation.builder.build import build
from mps_build.simulation.builder.ninja_file import NATIVE, Inputs, ninja_text, own_sources
from mps_build.simulation.builder.packages import Apt, check_host
from mps_build.simulation.builder.root import LIBRARY, Root, foreign_libraries, merge_usr
from mps_build.simulation.builder.source import (
    debian_tree,
    host_files,
    mirrored,
    patched_files,
    registrations,
    users_tree,
)
from mps_build.simulation.releases import find_release
from mps_build.wheel_build.patches.file import read_patch


def test_a_release_that_cannot_be_simulated_says_what_is_needed() -> None:
    with pytest.raises(SourceError, match=r"2\.15\.0 cannot be simulated") as caught:
        find_release("2.15.0")
    assert caught.value.hint is not None and "nox -s simulate -- v2.15.0 --source ~/pytorch" in caught.value.hint


@pytest.mark.parametrize("version", ["1.13.1", "2.6.0"])
def test_each_patch_has_a_header_and_touches_what_is_compiled_here_alone(version: str) -> None:
    release = find_release(version)
    patches = [read_patch(release.patches_root / name) for name in release.patches]

    assert sorted(path.name for path in release.patches_root.iterdir()) == sorted(release.patches)
    again = {f"aten/src/ATen/{name}" for name in release.cpu_files}
    for patch in patches:
        assert all("/mps/" in str(file) or str(file) in again for file in patch.files)


def test_the_ninja_file_compiles_each_file_and_links_all() -> None:
    root = Root(path=Path("/r o$t"), python_version="3.13")
    sources = ((Path("/a b/x.mm"), "x.mm", "-O0"), (Path("/n/y.c"), "y.c", ""), (Path("/n/z.cpp"), "z.cpp", "-O1"))
    text = ninja_text(Inputs(root=root, standard="17", include=(Path("/i"),), after=(Path("/j"),), sources=sources))

    assert "build objects/x.mm.o: compile /a$ b/x.mm\n  language = objective-c++\n  level = -O0" in text
    assert "build objects/y.c.o: compile_c /n/y.c" in text
    assert "build objects/z.cpp.o: compile /n/z.cpp\n  language = c++\n  level = -O1" in text
    assert f"build {LIBRARY}: link objects/x.mm.o objects/y.c.o objects/z.cpp.o" in text
    assert "-fobjc-runtime=macosx-13.0" in text and "-std=gnu++17" in text and "-DUSE_MPS" in text
    assert "-fno-objc-arc" in text  # PyTorch retains and releases by hand
    assert "/r o$$t" in text  # a dollar of a path is none of ninja's


def test_a_header_that_all_operators_include_is_read_once() -> None:
    root = Root(path=Path("/r"), python_version="3.11")
    names = ("aten.src.ATen.native.mps.operations.A.mm", "aten.src.ATen.native.mps.B.mm", "aten.src.ATen.mps.C.mm")
    sources = tuple((Path(f"/t/{name}"), name, "-O0") for name in (*names, "aten.src.ATen.native.mps.D.cpp"))
    header, flags = Path("/t/aten/src/ATen/mps/MPSStream.h"), ("-Dspare(x)=(x&1)",)
    text = ninja_text(
        Inputs(root=root, standard="17", include=(), after=(), sources=sources, shared=header, flags=flags)
    )

    assert text.count(f"build objects/host.pch: precompile {header}\n") == 1
    uses = "| objects/host.pch\n  language = objective-c++\n  level = -include-pch objects/host.pch -O0"
    assert text.count(uses) == 2
    assert "build objects/aten.src.ATen.mps.C.mm.o: compile /t/aten.src.ATen.mps.C.mm\n" in text
    assert "build objects/aten.src.ATen.native.mps.D.cpp.o: compile /t/aten.src.ATen.native.mps.D.cpp\n" in text
    assert "'-Dspare(x)=(x&1)'" in text


def test_packages_that_still_have_files_below_lib_make_a_root_like_newer_ones(tmp_path: Path) -> None:
    for name in ("lib/x86_64-linux-gnu/libc.so.6", "usr/lib/x86_64-linux-gnu/libtorch.so", "bin/sh", "usr/bin/env"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(name)
    (tmp_path / "lib/x86_64-linux-gnu/libc.so").symlink_to("libc.so.6")

    merge_usr(tmp_path)

    libraries = tmp_path / "usr/lib/x86_64-linux-gnu"
    assert sorted(path.name for path in libraries.iterdir()) == ["libc.so", "libc.so.6", "libtorch.so"]
    assert (libraries / "libc.so").is_symlink()
    for name in ("bin", "lib", "lib64", "sbin", "include"):
        assert (tmp_path / name).readlink() == Path("usr", name)
    assert (tmp_path / "bin/sh").read_text() == "bin/sh"


def test_the_tarball_alone_serves_where_the_archive_has_dropped_debians_part(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    release = find_release("1.13.1")
    folder = tmp_path / f"source-{release.package.version}"
    whole = tmp_path / "pytorch-1.13.1"
    for name in source.MEMBERS:
        (whole / name).parent.mkdir(parents=True, exist_ok=True)
        (whole / name).touch()
    folder.mkdir()
    archive = folder / "pytorch_1.13.1+dfsg.orig.tar.xz"

    def fetch(apt: object, package: str, where: Path) -> None:
        with tarfile.open(archive, "w:xz") as tar:
            tar.add(whole, "pytorch-1.13.1")
        digest = hashlib.sha256(archive.read_bytes()).hexdigest()
        (where / "p.dsc").write_text(f"Checksums-Sha256:\n {digest} 1 {archive.name}\n aa 2 gone.debian.tar.xz\n")
        raise BuildEnvironmentError("404")

    monkeypatch.setattr(Apt, "fetch_source", fetch)
    tree = debian_tree(release, tmp_path, log=tmp_path / "log", reporter=SilentReporter())
    assert (tree / "version.txt").is_file()


def test_no_tarball_stays_an_error(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    def fetch(apt: object, package: str, where: Path) -> None:
        where.mkdir()
        raise BuildEnvironmentError("404")

    monkeypatch.setattr(Apt, "fetch_source", fetch)
    with pytest.raises(BuildEnvironmentError, match="404"):
        debian_tree(find_release("1.13.1"), tmp_path, log=tmp_path / "log", reporter=SilentReporter())


def test_a_build_names_no_file_of_the_checkout(tmp_path: Path) -> None:
    """Else each other checkout or installation would compile everything anew in the same cache."""
    native = mirrored(NATIVE, tmp_path / "native")
    times = {path: path.stat().st_mtime_ns for path in native.rglob("*")}
    (native / "old.mm").touch()
    sources = tuple((path, path.name, "") for path in own_sources(mirrored(NATIVE, native)))
    root = Root(path=Path("/root"), python_version="3.13")
    text = ninja_text(Inputs(root=root, standard="17", include=(), after=(), sources=sources, native=native))

    assert str(NATIVE) not in text and str(native) in text
    assert {path: path.stat().st_mtime_ns for path in native.rglob("*") if path.is_file()} == {
        path: time for path, time in times.items() if path.is_file()
    }


def test_what_a_program_would_take_from_the_callers_system_is_named() -> None:
    listed = (
        "\tlinux-vdso.so.1 (0x00007f075f374000)",
        "\tlibLLVM.so.19.1 => /a b/simulated/usr/lib/libLLVM.so.19.1 (0x00007f0753000000)",
        "\tlibz3.so.4 => /lib/x86_64-linux-gnu/libz3.so.4 (0x00007f0751200000)",
        "\t/a b/simulated/usr/lib64/ld-linux-x86-64.so.2 => /lib64/ld-linux-x86-64.so.2 (0x00007f0751200000)",
        "\tlibc.so.6 => /a b/simulated-too/libc.so.6 (0x00007f0751200000)",
    )
    assert foreign_libraries(listed, Path("/a b/simulated")) == [
        "/lib/x86_64-linux-gnu/libz3.so.4",
        "/lib64/ld-linux-x86-64.so.2",
        "/a b/simulated-too/libc.so.6",
    ]


def test_a_loader_that_names_no_library_proves_nothing() -> None:
    with pytest.raises(BuildEnvironmentError, match="names no library"):
        foreign_libraries(["\tstatically linked"], Path("/simulated"))


def test_the_first_own_source_marks_where_pytorchs_selectors_end() -> None:
    assert own_sources()[0] == NATIVE / "elf/boundary.cpp"


def test_host_files_are_those_of_the_back_end(tmp_path: Path) -> None:
    base = tmp_path / "aten/src/ATen"
    sparse = "native/sparse/mps/F.mm"
    others = ("native/mps/kernels/D.metal", "native/E.mm", "native/sparse/G.cpp")
    for name in ("mps/A.mm", "mps/B.cpp", "native/mps/operations/C.mm", sparse, *others):
        (base / name).parent.mkdir(parents=True, exist_ok=True)
        (base / name).touch()

    assert [str(path) for path in host_files(tmp_path)] == [
        f"aten/src/ATen/{name}" for name in ("mps/A.mm", "mps/B.cpp", "native/mps/operations/C.mm", sparse)
    ]


def test_registrations_may_have_numbers_and_may_not_be_missing(tmp_path: Path) -> None:
    (tmp_path / "ATen").mkdir()
    with pytest.raises(SourceError, match=r"wrote no RegisterMPS\*\.cpp"):
        registrations(tmp_path)
    for name in ("RegisterMPS_1.cpp", "RegisterMPS_0.cpp"):
        (tmp_path / "ATen" / name).touch()
    assert [path.name for path in registrations(tmp_path)] == ["RegisterMPS_0.cpp", "RegisterMPS_1.cpp"]


def test_a_tree_of_another_release_is_refused(tmp_path: Path) -> None:
    for name in ("aten/src/ATen/native/mps", "aten/src/ATen/mps"):
        (tmp_path / name).mkdir(parents=True)
    (tmp_path / "aten/src/ATen/native/native_functions.yaml").touch()
    (tmp_path / "CMakeLists.txt").write_text("set(CMAKE_CXX_STANDARD 17)\n")
    (tmp_path / "version.txt").write_text("2.7.0a0\n")

    with pytest.raises(SourceError, match=r"is PyTorch 2\.7\.0"):
        users_tree(find_release("2.6.0"), tmp_path)

    (tmp_path / "version.txt").write_text("1.13.0a0\n")  # as the tag v1.13.1 has it
    assert users_tree(find_release("1.13.1"), tmp_path) == tmp_path


def test_patched_copies_are_written_beside_the_tree_and_only_where_they_change(tmp_path: Path) -> None:
    release = find_release("2.6.0")
    tree = tmp_path / "tree"
    for patch in (read_patch(release.patches_root / name) for name in release.patches):
        for file, text in _texts(patch).items():
            (tree / file).parent.mkdir(parents=True, exist_ok=True)
            (tree / file).write_text(text)
    before = {path: path.read_bytes() for path in tree.rglob("*") if path.is_file()}

    made = patched_files(release, tree, tmp_path / "patched")
    times = {name: path.stat().st_mtime_ns for name, path in made.items()}
    again = patched_files(release, tree, tmp_path / "patched")

    assert {path: path.read_bytes() for path in tree.rglob("*") if path.is_file()} == before
    empty = made["aten/src/ATen/mps/EmptyTensor.cpp"].read_text()
    assert "USE_MPS" in empty and "__APPLE__" not in empty
    assert {name: path.stat().st_mtime_ns for name, path in again.items()} == times


def _texts(patch: object) -> dict[str, str]:
    """Return for each file of a patch a text that its hunks fit."""
    found: dict[str, list[str]] = {}
    for hunk in patch.hunks:  # type: ignore[attr-defined]
        lines = found.setdefault(str(hunk.path), [])
        lines += ["\n"] * (hunk.line - 1 - len(lines))
        lines += [f"{line}\n" for line in hunk.before]
    return {name: "".join(lines) for name, lines in found.items()}


def test_a_host_that_lacks_something_is_reported_before_any_work(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))

    with pytest.raises(HostError, match="missing: apt-get, dpkg-deb, tar") as caught:
        check_host(tmp_path)
    assert caught.value.hint is not None and "apt-get install apt dpkg tar" in caught.value.hint


def test_another_system_is_refused(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(sys, "platform", "darwin")

    with pytest.raises(HostError, match="needs Linux on x86-64"):
        check_host(tmp_path)


def test_a_full_disk_is_reported_before_any_work(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr("shutil.which", lambda name: name)
    monkeypatch.setattr(packages, "FREE_BYTES", 1 << 60)

    with pytest.raises(DiskFull, match="a simulation takes"):
        check_host(tmp_path / "not" / "there")


def test_apt_works_in_its_own_folder_and_needs_no_superuser(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    said: list[tuple[str, ...]] = []
    monkeypatch.setattr(packages, "find_mirror", lambda _: "http://mirror.example/debian")
    monkeypatch.setattr(packages, "run_logged", lambda command, **_: said.append(command.argv))

    apt = Apt(tmp_path / "apt", suite="trixie", log=tmp_path / "log", reporter=SilentReporter())
    assert apt.fetch(["python3-torch"]) == ()

    assert len(said) == 2 and said[1][-5:] == (
        "install",
        "--download-only",
        "-y",
        "--no-install-recommends",
        "python3-torch",
    )
    for argv in said:
        for name in ("Dir::State", "Dir::Cache", "Dir::Etc::sourcelist", "Dir::State::status"):
            assert any(word.startswith(f"{name}={tmp_path}") for word in argv), name
    assert "trixie main" in (tmp_path / "apt" / "sources.list").read_text()


def test_a_missing_program_stops_a_build_before_anything_is_written(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("MPS_BUILD_CACHE", str(tmp_path / "cache"))
    monkeypatch.setenv("PATH", str(tmp_path))

    with pytest.raises(HostError):
        build(find_release("2.6.0"), jobs=1, reporter=SilentReporter())
    assert not (tmp_path / "cache").exists()
