"""A torch that is built from a tree: what is read from it, what is copied, how CMake is called, what is refused."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest
from mps_build.common.errors import CompileError, DiskFull, SourceError, UsageError
from mps_build.common.reporting import SilentReporter
from mps_build.simulation.builder import kernels, torch_build
from mps_build.simulation.builder.kernels import compile_kernels
from mps_build.simulation.builder.ninja_file import Inputs, ninja_text, own_sources
from mps_build.simulation.builder.root import Root
from mps_build.simulation.builder.source import changed_files, linux_text
from mps_build.simulation.builder.torch_build import TorchTree, check_room, configure_words, environment, override_lines
from mps_build.simulation.builder.torch_tree import FLATBUFFERS, copied, is_debian_tree
from mps_build.simulation.session import choose_release


def _tree(folder: Path, *, version: str = "2.9.0a0", submodules: bool = True) -> Path:
    """Return a PyTorch tree, as far as its facts are read."""
    for name in ("aten/src/ATen/native/mps/operations", "aten/src/ATen/mps", "cmake"):
        (folder / name).mkdir(parents=True)
    (folder / "aten/src/ATen/native/native_functions.yaml").touch()
    (folder / "CMakeLists.txt").write_text("set(CMAKE_CXX_STANDARD 20)\n")
    (folder / "version.txt").write_text(f"{version}\n")
    if submodules:
        (folder / "third_party/pybind11").mkdir(parents=True)
        (folder / "third_party/pybind11/CMakeLists.txt").touch()
    return folder


def test_facts_of_a_release_that_is_in_no_table_are_read_from_its_tree(tmp_path: Path) -> None:
    release = choose_release("2.9.1", source=_tree(tmp_path / "clone"))

    assert (release.is_built, release.standard, release.cpu_files, release.patches) == (True, "20", (), ())
    assert release.home.suite == "trixie" and release.wheel is not None and release.wheel.sha256 is None
    assert "cmake" in release.root and "python3-torch" not in release.root
    assert "libonnx-dev" not in release.root  # third_party has it


def test_an_older_release_gets_the_older_python(tmp_path: Path) -> None:
    release = choose_release("2.3.1", source=_tree(tmp_path, version="2.3.0a0"))

    assert release.home.python == "3.11" and "libstdc++-12-dev" in release.root


def test_debians_torch_is_the_default_where_there_is_one(tmp_path: Path) -> None:
    clone = _tree(tmp_path, version="2.6.0a0")

    assert not choose_release("2.6.0", source=clone).is_built
    built = choose_release("2.6.0", source=clone, torch="built")
    known = choose_release("2.6.0")
    assert built.is_built and built.wheel == known.wheel and known.cpu_files and not built.cpu_files


@pytest.mark.parametrize("torch", [None, "debian"])
def test_another_release_without_a_tree_names_the_command(torch: None) -> None:
    with pytest.raises(SourceError, match=r"2\.9\.1 cannot be simulated over Debian's torch") as caught:
        choose_release("2.9.1", torch=torch)
    assert "nox -s simulate -- v2.9.1 --source ~/pytorch" in (caught.value.hint or "")


def test_a_torch_is_built_from_a_tree_alone() -> None:
    with pytest.raises(UsageError, match="--torch built needs the tree"):
        choose_release("2.6.0", torch="built")


def test_a_tree_of_another_release_or_without_submodules_is_refused(tmp_path: Path) -> None:
    with pytest.raises(SourceError, match=r"is PyTorch 2\.9\.0, not 2\.8\.0"):
        choose_release("2.8.0", source=_tree(tmp_path / "other"))
    bare = _tree(tmp_path / "bare", submodules=False)
    with pytest.raises(SourceError, match="cannot be built without its submodules") as caught:
        choose_release("2.9.1", source=bare)
    assert caught.value.hint == f"git -C {bare} submodule update --init --recursive"


def test_debians_source_package_takes_third_party_from_the_root(tmp_path: Path) -> None:
    (tmp_path / "debian/patches").mkdir(parents=True)
    (tmp_path / "debian/patches/series").touch()
    _tree(tmp_path, version="2.6.0a0", submodules=False)

    assert is_debian_tree(tmp_path)
    assert "libonnx-dev" in choose_release("2.6.0", source=tmp_path, torch="built").root


def _words(root: Root, *, is_debian: bool) -> dict[str, str]:
    torch = TorchTree(tree=Path("/t/tree"), build=Path("/t/build"), version="2.9.1", is_debian=is_debian)
    words = configure_words(root, torch, Path("/t/overrides.cmake"))
    assert words[:7] == (f"{root.path}/usr/bin/cmake", "-G", "Ninja", "-S", "/t/tree", "-B", "/t/build")
    return dict(word.removeprefix("-D").split("=", 1) for word in words[7:])


def test_cmake_is_given_what_is_off_where_all_lies_and_that_cpp_has_mps() -> None:
    root = Root(path=Path("/root of it"), python_version="3.13")
    said = _words(root, is_debian=False)

    assert "-DUSE_MPS" in said["CMAKE_CXX_FLAGS"].split()
    assert "USE_MPS" not in said  # the option would want Objective-C++, frameworks and xcrun
    assert said["USE_CUDA"] == said["USE_DISTRIBUTED"] == said["USE_MKLDNN"] == "0"
    assert said["CMAKE_CXX_FLAGS_MINSIZEREL"] == "-O0 -DNDEBUG" and said["CMAKE_BUILD_TYPE"] == "MinSizeRel"
    assert said["CXX_HAS_AVX2_2"] == "OFF"
    assert said["CMAKE_SYSROOT"] == "/root of it" and said["CMAKE_FIND_ROOT_PATH_MODE_LIBRARY"] == "ONLY"
    assert said["Python_EXECUTABLE"] == str(root.python) and said["CMAKE_INSTALL_PREFIX"] == "/t/tree/torch"
    assert f"--dynamic-linker={root.loader}" in said["CMAKE_EXE_LINKER_FLAGS"]  # protoc is run by the build
    assert "USE_SYSTEM_LIBS" not in said
    assert _words(root, is_debian=True)["USE_SYSTEM_LIBS"] == "ON"


def test_nothing_of_the_caller_decides_what_is_built(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CXXFLAGS", "-march=native")
    monkeypatch.setenv("USE_CUDA", "1")
    torch = TorchTree(tree=Path("/t"), build=Path("/b"), version="2.9.1", is_debian=False)

    found = environment(torch)

    assert not {"CXXFLAGS", "USE_CUDA"} & found.keys()
    assert found["PYTORCH_BUILD_VERSION"] == "2.9.1" and found["PATH"] == "/usr/bin:/bin"
    assert found["GENERIC_BLAS_LIBRARIES"] == "blas"  # CMake asks the environment for it


def test_headers_are_read_once_and_libraries_find_each_other(tmp_path: Path) -> None:
    text = override_lines(tmp_path)

    assert 'INSTALL_RPATH "$ORIGIN"' in text
    for target in ("c10", "torch_cpu", "torch_python"):
        assert f"CALL mps_build_wide_header {target} " in text and (tmp_path / f"{target}.h").is_file()


def test_a_copy_has_what_is_compiled_and_only_what_changed_is_written_again(tmp_path: Path) -> None:
    clone = _tree(tmp_path / "clone")
    kept = ("torch/a.cpp", "torch/b.py", "third_party/fmt/f.h", "cmake/Dependencies.cmake")
    left = ("test/t.py", "aten/src/ATen/native/mps/operations/A.mm", "third_party/cutlass/c.h", "build/x", "torch/l.so")
    (clone / "linked").symlink_to("torch")
    for name in (*kept, *left):
        (clone / name).parent.mkdir(parents=True, exist_ok=True)
        (clone / name).write_text('add("/usr/include/fp16.h")')

    copy = copied(clone, tmp_path / "home/tree", is_debian=True)

    assert all((copy / name).is_file() for name in kept) and not any((copy / name).exists() for name in left)
    assert (copy / "cmake/Dependencies.cmake").read_text() == 'add("${CMAKE_SYSROOT}/usr/include/fp16.h")'
    assert (copy / "torch/a.cpp").read_text() == 'add("/usr/include/fp16.h")'
    assert (copy / "linked").readlink() == Path("torch")

    times = {path: path.stat().st_mtime_ns for path in copy.rglob("*") if path.is_file()}
    (copy / "torch/version.py").write_text("made by the build")
    (clone / "torch/a.cpp").touch()  # another date, the same bytes
    (clone / "torch/b.py").write_text("changed")
    (clone / "third_party/fmt/f.h").unlink()
    copied(clone, copy, is_debian=True)

    assert (copy / "torch/a.cpp").stat().st_mtime_ns == times[copy / "torch/a.cpp"]
    assert (copy / "torch/b.py").read_text() == "changed"
    assert not (copy / "third_party/fmt/f.h").exists() and (copy / "torch/version.py").is_file()


def test_what_the_roots_own_program_wrote_stays(tmp_path: Path) -> None:
    clone = _tree(tmp_path / "clone")
    (clone / FLATBUFFERS).parent.mkdir(parents=True)
    (clone / FLATBUFFERS).write_text("of another version")
    copy = copied(clone, tmp_path / "tree", is_debian=True)
    (copy / FLATBUFFERS).write_text("of the root's")

    assert (copied(clone, copy, is_debian=True) / FLATBUFFERS).read_text() == "of the root's"


def test_of_a_clone_only_what_git_knows_or_would_add_is_copied(tmp_path: Path) -> None:
    clone = _tree(tmp_path / "clone")
    (clone / "torch").mkdir()
    for name, text in {
        ".gitignore": "torch/version.py\n",
        "torch/version.py": "old",
        "torch/new.cpp": "int x;",
    }.items():
        (clone / name).write_text(text)
    subprocess.run(["git", "init", "-q", str(clone)], check=True)
    subprocess.run(["git", "-C", str(clone), "add", "CMakeLists.txt", "aten", ".gitignore"], check=True)

    copy = copied(clone, tmp_path / "tree", is_debian=False)

    assert (copy / "CMakeLists.txt").is_file() and (copy / "torch/new.cpp").is_file()
    assert not (copy / "torch/version.py").exists() and not (copy / ".git").exists()


def test_a_disk_that_cannot_hold_it_names_how_much_it_takes(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(torch_build, "_ROOM", 1 << 60)
    with pytest.raises(DiskFull, match=r"building torch takes \d+ GB"):
        check_room(tmp_path / "not" / "there")

    (tmp_path / "build").mkdir()
    (tmp_path / "build/build.ninja").touch()
    monkeypatch.setattr(torch_build, "_ROOM_TO_GO_ON", 0)
    check_room(tmp_path)  # what is there need not be made again


def test_int64_is_named_where_the_code_says_long_long() -> None:
    for text, wanted in {
        "std::max(n, 0LL)": "std::max(n, int64_t(0))",
        "std::max<size_t>(2ull, n)": "std::max<size_t>(uint64_t(2), n)",
        "vector<long  long int> a; unsigned long long b;": "vector<int64_t> a; uint64_t b;",
        'f("long long 1LL"); // long long': 'f("long long 1LL"); // long long',
        'R"METAL(long long x = 1LL; "a)METAL" + 1LL': 'R"METAL(long long x = 1LL; "a)METAL" + int64_t(1)',
        "/* 1LL\n2LL */ '\\'' 3LL": "/* 1LL\n2LL */ '\\'' int64_t(3)",
        "[n longLongValue]; long x = 3L; xLL": "[n longLongValue]; long x = 3L; xLL",
    }.items():
        assert linux_text(text) == wanted, text


def test_what_asks_for_macos_asks_for_mps_and_only_changed_sources_are_copied(tmp_path: Path) -> None:
    clone = _tree(tmp_path / "clone")
    empty, plain = "aten/src/ATen/mps/EmptyTensor.cpp", "aten/src/ATen/native/mps/operations/A.mm"
    (clone / empty).write_text("#if defined(__APPLE__)\n#if __is_target_os(macOS)\nint x;\n#endif\n#endif\n")
    (clone / plain).write_text("int y;\n")

    found = changed_files(clone, tmp_path / "patched")

    assert list(found) == [empty]
    assert found[empty].read_text() == "#if defined(USE_MPS)\n#if defined(USE_MPS)\nint x;\n#endif\n#endif\n"


def test_beside_a_torch_with_mps_nothing_stands_in_for_its_parts() -> None:
    root = Root(path=Path("/r"), python_version="3.13")
    plain = ninja_text(Inputs(root=root, standard="17", include=(), after=(), sources=()))
    own = ninja_text(Inputs(root=root, standard="20", include=(), after=(), sources=(), libraries=Path("/t/torch/lib")))

    assert "-DHAVE_AVX2_CPU_DEFINITION" in plain and "-lcpuinfo" in plain
    assert "-DHAVE_AVX2_CPU_DEFINITION" not in own and "-L/t/torch/lib -ltorch_cpu" in own
    names = {path.name for path in own_sources(with_mps=True)}
    assert {path.name for path in own_sources()} - names == {"without_mps.cpp"}


def test_a_tree_of_no_release_has_no_wheel_and_says_so(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    said: list[str] = []
    reporter = SilentReporter()
    monkeypatch.setattr(SilentReporter, "line", lambda _, text: said.append(text))

    def fetch(*_: object, **__: object) -> None:
        raise SourceError("no matching distribution for torch==2.16.0")

    monkeypatch.setattr(kernels, "fetch_wheel", fetch)
    release = choose_release("2.16.0", source=_tree(tmp_path / "clone", version="2.16.0a0"))

    home = compile_kernels(release, tmp_path / "kernels", log=tmp_path / "log", reporter=reporter)

    assert home.is_dir() and not any(home.iterdir())
    assert said == ["no Metal kernels but those that are text: no matching distribution for torch==2.16.0"]
    with pytest.raises(SourceError):  # of a known release its kernels are never left out
        compile_kernels(choose_release("2.6.0"), tmp_path / "kernels", log=tmp_path / "log", reporter=reporter)


def test_a_tree_that_does_not_compile_says_what_the_compiler_says_first(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """Files that break with a header which is read once are compiled without; what fails then is the tree's."""
    rounds: list[str] = []

    def fail(command: object, *, log: Path, **_: object) -> None:
        rounds.append("run")
        log.write_text("[3/9] x\nFAILED: a.cpp.o\n/t/a.cpp:7:1: error: no such thing\n/t/b.cpp:1:1: error: after it\n")
        raise CompileError("the build failed (exit 1)", hint="the whole output is in LOG")

    monkeypatch.setattr(torch_build, "run_build", fail)
    monkeypatch.setattr(torch_build, "exclude", lambda build, said: ("a.cpp",) if len(rounds) < 2 else ())
    torch = TorchTree(tree=tmp_path / "tree", build=tmp_path / "build", version="2.9.1", is_debian=False)
    root = Root(path=tmp_path, python_version="3.13")

    with pytest.raises(CompileError, match=r"does not compile: /t/a\.cpp:7:1: error: no such thing") as caught:
        torch_build._compile(root, torch, jobs=1, log=tmp_path / "log", reporter=SilentReporter())
    assert rounds == ["run", "run"] and caught.value.hint == "the whole output is in LOG"
