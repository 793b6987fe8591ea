"""zig as a macOS compiler: what the wrappers hand on, what the toolchain adds, what is missing."""

from __future__ import annotations

import json
import shlex
import sys
import sysconfig
from pathlib import Path

import pytest
from mps_build.commands.build_wheel import following_lines
from mps_build.common.environment import Toolchain
from mps_build.common.errors import BuildEnvironmentError
from mps_build.common.process import Captured, Command, capture
from mps_build.wheel_build.zig.toolchain import build_runtime, cross_toolchain, runtime_command

ABI = f"{sys.version_info[0]}{sys.version_info[1]}"


@pytest.fixture(name="include")
def _include(tmp_path: Path) -> Path:
    include = tmp_path / "include"
    include.mkdir()
    (include / "Python.h").write_text("")
    return include


def _python(tmp_path: Path, *, include: Path, free_threaded: bool = False, implementation: str = "cpython") -> Path:
    """Return a program that answers as a Python would that has ziglang; its zig prints its arguments."""
    zig = tmp_path / "zig folder" / "zig"
    zig.parent.mkdir(exist_ok=True)
    zig.write_text(
        '#!/bin/sh\n[ "$1" = version ] && { echo 0.17.1; exit; }\n'
        'printf "%s\\n" "$ZIG_GLOBAL_CACHE_DIR"\nfor word; do printf "%s\\n" "$word"; done\n'
    )
    zig.chmod(0o755)
    facts = {
        "package": "0.17.1-linux-x86_64",
        "zig": str(zig),
        "include": str(include),
        "abi": ABI + "t" * free_threaded,
        "free_threaded": free_threaded,
        "implementation": implementation,
    }
    python = tmp_path / "python"
    python.write_text(f"#!/bin/sh\necho {shlex.quote(json.dumps(facts))}\n")
    python.chmod(0o755)
    return python


def _toolchain(tmp_path: Path, python: Path) -> Toolchain:
    return cross_toolchain(
        python=python, folder=tmp_path / "cross it's", cache=tmp_path / "zig cache", deployment_target="11.0"
    )


def _call(tmp_path: Path, tool: str, *arguments: str) -> Captured:
    return capture(Command(argv=(str(tmp_path / "cross it's" / tool), *arguments), environ={"PATH": "/usr/bin:/bin"}))


def test_the_toolchain_names_the_target_for_cmake_python_and_the_binding(tmp_path: Path, include: Path) -> None:
    toolchain = _toolchain(tmp_path, _python(tmp_path, include=include))

    assert toolchain.variables == {
        "CMAKE_TOOLCHAIN_FILE": str(tmp_path / "cross it's" / "darwin-arm64.cmake"),
        "MACOSX_DEPLOYMENT_TARGET": "11.0",
        "_PYTHON_HOST_PLATFORM": "macosx-11.0-arm64",
        "SETUPTOOLS_EXT_SUFFIX": f".cpython-{ABI}-darwin.so",
    }
    assert toolchain.facts["cross"] == "zig"
    assert toolchain.facts["zig"] == "0.17.1"
    assert toolchain.facts["libc++"] == "the system's"


def test_the_wrapper_hands_arguments_on_whole_and_in_order(tmp_path: Path, include: Path) -> None:
    _toolchain(tmp_path, _python(tmp_path, include=include))

    answer = _call(
        tmp_path,
        "c++",
        "-O3",
        "-mmacosx-version-min=11.0",
        "-DTEXT=\"a 'b' $c\"",
        "-c",
        "my file.cpp",
        "-o",
        "my file.o",
    )

    cache, *words = answer.stdout.splitlines()
    assert cache == str(tmp_path / "zig cache")
    assert words[:3] == ["c++", "-target", "aarch64-macos.11.0"]
    assert words[-6:] == ["-O3", "-DTEXT=\"a 'b' $c\"", "-c", "my file.cpp", "-o", "my file.o"]


def test_a_bundle_becomes_a_named_dylib_since_zig_knows_no_bundles(tmp_path: Path, include: Path) -> None:
    _toolchain(tmp_path, _python(tmp_path, include=include))

    words = _call(tmp_path, "cc", "-bundle", "-o", "out dir/_C.cpython-311-darwin.so", "x.o").stdout.splitlines()

    assert words[-5:] == [
        "-shared",
        "-o",
        "out dir/_C.cpython-311-darwin.so",
        "x.o",
        "-Wl,-install_name,@rpath/_C.cpython-311-darwin.so",
    ]


def test_objective_c_alone_sees_the_declarations_and_frameworks_their_stubs(tmp_path: Path, include: Path) -> None:
    _toolchain(tmp_path, _python(tmp_path, include=include))
    folder = tmp_path / "cross it's"

    objective = _call(tmp_path, "c++", "-c", "a.mm", "-o", "a.mm.o").stdout.splitlines()
    plain = _call(tmp_path, "c++", "-c", "a.cpp", "-o", "a.cpp.o").stdout.splitlines()
    linked = _call(tmp_path, "c++", "-shared", "a.mm.o", "-weak_framework", "Metal").stdout.splitlines()

    assert objective[-4:] == [
        "-include",
        str(folder / "objc/mps_build_sdk.h"),
        "-idirafter",
        str(folder / "objc/include"),
    ]
    assert not any("objc" in word for word in plain)
    assert f"-F{folder / 'sdk/System/Library/Frameworks'}" in linked and "-lobjc" in linked
    assert "-include" not in linked


def test_the_fake_xcrun_has_an_sdk_and_no_metal_compiler(tmp_path: Path, include: Path) -> None:
    toolchain = _toolchain(tmp_path, _python(tmp_path, include=include))
    (tools,) = toolchain.path
    sdk = tmp_path / "cross it's" / "sdk"

    def ask(*words: str) -> Captured:
        return capture(Command(argv=(str(Path(tools) / "xcrun"), *words), environ={"PATH": "/usr/bin:/bin"}))

    assert ask("--sdk", "macosx", "--show-sdk-version").stdout == "15.2\n"
    assert ask("--sdk", "macosx", "--show-sdk-path").stdout == f"{sdk}\n"
    refused = ask("metal", "-std=macos-metal2.3")
    assert refused.exit == 72 and 'unable to find utility "metal"' in refused.stderr
    stub = sdk / "System/Library/Frameworks/Metal.framework/Metal.tbd"
    assert "_MTLCreateSystemDefaultDevice" in stub.read_text(encoding="utf-8"), "the sample calls it, no wheel does"


@pytest.mark.parametrize("tool", ["strip", "install_name_tool"])
def test_tools_that_would_break_a_signature_refuse(tmp_path: Path, include: Path, tool: str) -> None:
    _toolchain(tmp_path, _python(tmp_path, include=include))

    answer = _call(tmp_path, tool, "lib.dylib")

    assert answer.exit == 1
    assert "would rewrite a signed file" in answer.stderr


def test_a_second_call_leaves_equal_files_alone(tmp_path: Path, include: Path) -> None:
    python = _python(tmp_path, include=include)
    _toolchain(tmp_path, python)
    stamps = {path: path.stat().st_mtime_ns for path in (tmp_path / "cross it's").iterdir()}

    _toolchain(tmp_path, python)

    assert {path: path.stat().st_mtime_ns for path in (tmp_path / "cross it's").iterdir()} == stamps


def test_macos_pyconfig_stands_over_the_hosts_and_knows_a_free_threaded_python(tmp_path: Path, include: Path) -> None:
    toolchain = _toolchain(tmp_path, _python(tmp_path, include=include, free_threaded=True))

    folder = Path(toolchain.variables["CMAKE_TOOLCHAIN_FILE"]).parent
    root = json.loads((folder / "python-headers.json").read_text())["roots"][0]
    assert root == {
        "type": "file",
        "name": str(include / "pyconfig.h"),
        "external-contents": str(folder / "pyconfig.h"),
    }
    assert "#define Py_GIL_DISABLED 1\n" in (folder / "pyconfig.h").read_text()
    assert toolchain.variables["SETUPTOOLS_EXT_SUFFIX"] == f".cpython-{ABI}t-darwin.so"


def test_pyconfig_says_of_types_what_this_64_bit_host_says_where_both_agree(tmp_path: Path, include: Path) -> None:
    """macOS arm64 and 64-bit Linux differ in long double (and pthread_key_t) alone."""
    toolchain = _toolchain(tmp_path, _python(tmp_path, include=include))
    text = (Path(toolchain.variables["CMAKE_TOOLCHAIN_FILE"]).parent / "pyconfig.h").read_text()
    ours = dict(line.split()[1:3] for line in text.splitlines() if line.startswith("#define SIZEOF_"))

    host = {name: str(sysconfig.get_config_var(name)) for name in ours if sysconfig.get_config_var(name)}

    assert len(host) > 10
    assert {name for name in host if host[name] != ours[name]} <= {
        "SIZEOF_LONG_DOUBLE",
        "SIZEOF_PTHREAD_KEY_T",
        "SIZEOF_FPOS_T",
    }


def test_a_python_without_headers_is_an_error_that_names_the_package(tmp_path: Path) -> None:
    with pytest.raises(BuildEnvironmentError, match="has no headers") as caught:
        _toolchain(tmp_path, _python(tmp_path, include=tmp_path / "nowhere"))

    assert "python3-dev" in (caught.value.hint or "")


def test_an_environment_without_zig_is_an_error_that_names_the_lock(tmp_path: Path) -> None:
    with pytest.raises(BuildEnvironmentError, match="cannot say where its zig") as caught:
        cross_toolchain(python=Path("/bin/false"), folder=tmp_path, cache=tmp_path, deployment_target="11.0")

    assert "ziglang" in (caught.value.hint or "")


def test_pypy_is_refused(tmp_path: Path, include: Path) -> None:
    with pytest.raises(BuildEnvironmentError, match="is pypy"):
        _toolchain(tmp_path, _python(tmp_path, include=include, implementation="pypy"))


def test_the_runtime_is_built_by_linking_a_library_that_needs_it(tmp_path: Path, include: Path) -> None:
    toolchain = _toolchain(tmp_path, _python(tmp_path, include=include))

    command = runtime_command(toolchain, scratch=tmp_path / "scratch")

    assert command.argv[0] == str(tmp_path / "cross it's" / "c++")
    assert "new int" in (tmp_path / "scratch" / "runtime.cpp").read_text()
    assert capture(command).ok


def test_a_zig_that_fails_is_an_error_with_its_last_words(tmp_path: Path) -> None:
    command = Command(argv=("/bin/sh", "-c", "echo error: no space left; exit 1"))

    with pytest.raises(BuildEnvironmentError, match="could not build its runtime") as caught:
        build_runtime(command, log=tmp_path / "log")

    assert "error: no space left" in str(caught.value)
    assert str(tmp_path / "log") in (caught.value.hint or "")


def test_a_wheel_for_a_mac_is_not_offered_to_another_systems_pip(tmp_path: Path) -> None:
    wheel = tmp_path / "mps_build_sample-1.0.0-cp313-cp313-macosx_11_0_arm64.whl"

    here, there = (list(following_lines(wheel, is_torch=False, on_mac=on_mac)) for on_mac in (False, True))

    assert f"pip install {wheel}" not in "\n".join(here)
    assert here[0].startswith("it is for a Mac with Apple silicon: copy it there")
    assert there[0] == f"install it: pip install {wheel}"
    assert here[1] == there[1] == f"next: nox -s audit_wheel -- {wheel}"
    of_torch = list(following_lines(wheel, is_torch=True, on_mac=False))
    assert of_torch[2].endswith(f": nox -s verify_mps -- {wheel} --simulated --trust --quick")


def test_cpp_is_linked_with_the_systems_library_and_what_it_lacks_fails(tmp_path: Path, include: Path) -> None:
    toolchain = _toolchain(tmp_path, _python(tmp_path, include=include))
    stub = (tmp_path / "cross it's" / "libsystemcxx.tbd").read_text(encoding="utf-8")

    linked = _call(tmp_path, "c++", "-shared", "a.o", "-o", "a.dylib").stdout
    compiled = _call(tmp_path, "c++", "-c", "a.cpp", "-o", "a.o").stdout

    assert toolchain.facts["libc++"] == "the system's"
    assert "-nostdlib++" in linked and "libsystemcxx.tbd" in linked
    assert "-nostdlib++" not in compiled
    assert "install-name: '/usr/lib/libc++.1.dylib'" in stub
    assert "__Znwm" in stub and "__ZdlPvm" not in stub  # sized delete came after macOS 11's wheels were built
