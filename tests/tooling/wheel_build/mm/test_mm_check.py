"""check_mm as a user calls it, on a small tree: exit codes, JSON, changed files, what is missing."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path
from typing import Any

import pytest
from mps_build.cli import main
from mps_build.common.reporting import SilentReporter
from mps_build.wheel_build.mm.check import NOT_WHOLE, check_patches, check_tree_files, mm_files
from mps_build.wheel_build.patches.file import read_patch

pytestmark = pytest.mark.zig
OPERATIONS = "aten/src/ATen/native/mps/operations"
# The tree's own generator: what PyTorch's writes 7,000 of.
GENERATOR = """
import pathlib, sys
folder = pathlib.Path(sys.argv[sys.argv.index("--install_dir") + 1])
(folder / "ops").mkdir(parents=True)
(folder / "ops" / "made.h").write_text("#pragma once\\ninline int made() { return 1; }\\n")
OPTIONS = ("--mps",)
"""
RIGHT = """\
#define TORCH_ASSERT_ONLY_METHOD_OPERATORS
#include <ATen/native/mps/OperationUtils.h>
#include <ATen/ops/made.h>
#include <fmt/format.h>

namespace at::native {
MPSGraphTensor* doubled(MPSGraph* graph, MPSGraphTensor* tensor) {
  if (is_macos_13_or_newer(MacOSVersion::MACOS_VER_14_0_PLUS)) {
    tensor = [graph realPartOfTensor:tensor name:nil];
  }
  auto name = fmt::format("{}", made());
  return [graph additionWithPrimaryTensor:tensor secondaryTensor:tensor name:nil];
}
} // namespace at::native
"""


@pytest.fixture
def tree(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    root = tmp_path / "pytorch"
    files = {
        "CMakeLists.txt": 'set(CMAKE_CXX_STANDARD 17)\nstring(APPEND CMAKE_OBJCXX_FLAGS " -DUSE_MPS -fno-objc-arc")\n',
        "version.txt": "2.6.0a0\n",
        "torchgen/__init__.py": "",
        "torchgen/gen.py": GENERATOR,
        "aten/src/ATen/native/native_functions.yaml": "[]\n",
        "aten/src/ATen/mps/MPSDevice.h": (
            "#pragma once\nenum class MacOSVersion { MACOS_VER_14_0_PLUS };\nbool is_macos_13_or_newer(MacOSVersion);\n"
        ),
        "aten/src/ATen/native/mps/OperationUtils.h": (
            "#pragma once\n#include <ATen/mps/MPSDevice.h>\n"
            "#include <MetalPerformanceShadersGraph/MetalPerformanceShadersGraph.h>\n"
        ),
        f"{OPERATIONS}/Doubled.mm": RIGHT,
    }
    for name, text in files.items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(text, encoding="utf-8")
    monkeypatch.setenv("MPS_BUILD_WORK", str(tmp_path / "work"))
    return root


def _check(tmp_path: Path, *arguments: str) -> tuple[int, dict[str, Any]]:
    path = tmp_path / "found.json"
    path.unlink(missing_ok=True)
    status = main("check_mm", [*arguments, "--json", str(path)])
    return status, json.loads(path.read_text(encoding="utf-8"))


def test_a_right_file_of_a_tree_that_was_not_configured(tree: Path, tmp_path: Path) -> None:
    status, found = _check(tmp_path, str(tree / OPERATIONS / "Doubled.mm"))
    assert (status, found["diagnostics"], found["unknown"]) == (0, [], [])
    assert found["files"] == [f"{OPERATIONS}/Doubled.mm"]
    assert (found["recipe"], found["deployment_target"]) == ("v2.6.0", "13.0")


def test_mistakes_end_with_8_and_say_where(tree: Path, tmp_path: Path) -> None:
    file = tree / OPERATIONS / "Doubled.mm"
    file.write_text(RIGHT.replace("secondaryTensor:", "secondTensor:").replace("if (is_macos", "if (!is_macos"))
    status, found = _check(tmp_path, str(file))
    assert status == 8 and found["cause"] == "compile"
    rows = [(each["line"], each["severity"]) for each in found["diagnostics"]]
    assert rows == [(9, "error"), (12, "error")]
    assert "additionWithPrimaryTensor:secondaryTensor:name:" in found["diagnostics"][1]["text"]
    assert all(set(each) == {"file", "line", "column", "severity", "text"} for each in found["diagnostics"])


def test_the_target_of_the_recipe_decides_what_needs_a_guard(tree: Path, tmp_path: Path) -> None:
    file = tree / OPERATIONS / "Doubled.mm"
    file.write_text(RIGHT.replace("if (is_macos", "if (!is_macos"))
    assert _check(tmp_path, str(file))[0] == 8
    assert _check(tmp_path, str(file), "--target", "14.0")[0] == 0
    assert _check(tmp_path, str(file), "--recipe", "v2.15.0")[0] == 0


def test_a_guard_in_the_only_caller_counts_and_one_caller_without_does_not(tree: Path, tmp_path: Path) -> None:
    helper = "static void help(MPSGraph* g, MPSGraphTensor* t) { [g conjugateWithTensor:t name:nil]; }\n"
    caller = "void one(MPSGraph* g, MPSGraphTensor* t) { if (@available(macOS 14.0, *)) { help(g, t); } }\n"
    file = tree / OPERATIONS / "Helper.mm"
    file.write_text(f"#include <ATen/native/mps/OperationUtils.h>\n{helper}{caller}")
    assert _check(tmp_path, str(file))[0] == 0
    file.write_text(f"{file.read_text()}void two(MPSGraph* g, MPSGraphTensor* t) {{ help(g, t); }}\n")
    assert _check(tmp_path, str(file))[0] == 8


def test_a_selector_that_nobody_knows_is_reported_and_is_no_mistake(tree: Path, tmp_path: Path) -> None:
    file = tmp_path / "New.mm"
    file.write_text(RIGHT.replace("realPartOfTensor:tensor name:nil", "entirelyUnheardOf:tensor with:nil or:nil"))
    status, found = _check(tmp_path, str(file), "--source", str(tree))
    assert (status, found["diagnostics"]) == (0, [])
    (row,) = found["unknown"]
    assert row["severity"] == "unknown" and "docs/build/check_mm.md" in row["text"]


def test_an_apple_header_that_we_lack_is_named(tree: Path, tmp_path: Path) -> None:
    file = tmp_path / "Other.mm"
    file.write_text("#import <UIKit/UIKit.h>\n")
    status, found = _check(tmp_path, str(file), "--source", str(tree))
    assert status == 8
    assert "UIKit is Apple's, and our declarations lack it" in found["diagnostics"][0]["text"]


def test_a_header_cycle_is_a_diagnostic(tree: Path, tmp_path: Path) -> None:
    for one, two in (("A", "B"), ("B", "A")):
        (tree / f"aten/src/ATen/mps/{one}.h").write_text(f"#include <ATen/mps/{two}.h>\n")
    file = tmp_path / "Cycle.mm"
    file.write_text("#include <ATen/mps/A.h>\n")
    status, found = _check(tmp_path, str(file), "--source", str(tree))
    assert status == 8
    assert "nested too deeply" in found["diagnostics"][0]["text"]


def test_without_files_the_changed_ones_are_checked(tree: Path, tmp_path: Path) -> None:
    for argv in (("init", "-q", "-b", "main"), ("add", "-A"), ("commit", "-qm", "base")):
        _git(tree, *argv)
    status, found = _check(tmp_path, "--source", str(tree))
    assert status == 2 and "nothing to check" in found["error"]
    file = tree / OPERATIONS / "Doubled.mm"
    file.write_text(file.read_text().replace("name:nil", "nme:nil"))
    (tree / OPERATIONS / "Added.mm").write_text(RIGHT)
    (tree / "aten/src/ATen/native/metal").mkdir()
    (tree / "aten/src/ATen/native/metal/Old.mm").write_text("#import <UIKit/UIKit.h>\n")
    status, found = _check(tmp_path, "--source", str(tree))
    assert status == 8
    assert found["files"] == [f"{OPERATIONS}/Added.mm", f"{OPERATIONS}/Doubled.mm"]
    assert {each["file"] for each in found["diagnostics"]} == {f"{OPERATIONS}/Doubled.mm"}


def _git(root: Path, *arguments: str) -> None:
    name = ("-c", "user.name=a", "-c", "user.email=a@b", "-c", "core.hooksPath=/dev/null")
    subprocess.run(["git", *name, *arguments], cwd=root, check=True, capture_output=True)


def test_checked_a_third_time_a_file_shares_the_header_too(tree: Path, tmp_path: Path) -> None:
    file = str(tree / OPERATIONS / "Doubled.mm")
    made = []
    for _ in range(4):
        assert _check(tmp_path, file)[0] == 0
        made.append(len(list((tmp_path / "work/check_mm/scratch/shared").glob("*.pch"))))
    assert made == [0, 0, 1, 1]


def test_three_files_share_the_header_and_say_the_same(tree: Path, tmp_path: Path) -> None:
    files = []
    for number in range(4):
        files.append(tree / OPERATIONS / f"Many{number}.mm")
        files[-1].write_text(RIGHT if number else RIGHT.replace("realPartOfTensor", "realPartOfTensr"))
    status, found = _check(tmp_path, *map(str, files))
    assert list((tmp_path / "work/check_mm/scratch/shared").glob("*.pch"))
    assert status == 8 and [each["file"] for each in found["diagnostics"]] == [f"{OPERATIONS}/Many0.mm"]
    utils = tree / "aten/src/ATen/native/mps/OperationUtils.h"
    utils.write_text(utils.read_text() + "#error changed\n")
    status, found = _check(tmp_path, *map(str, files[1:]))
    assert status == 8 and "changed" in found["diagnostics"][0]["text"]


_PATCH = """\
Description: a patch of Objective-C++, for this test
Origin: vendor
Forwarded: no
Fixes: B0
---
diff --git a/{file} b/{file}
--- a/{file}
+++ b/{file}
@@ -11,3 +11,3 @@ MPSGraphTensor* doubled(MPSGraph* graph, MPSGraphTensor* tensor) {{
   auto name = fmt::format("{{}}", made());
-  return [graph additionWithPrimaryTensor:tensor secondaryTensor:tensor name:nil];
+  return [graph {selector}:tensor secondaryTensor:tensor name:nil];
 }}
"""


def test_the_objective_c_of_a_patch_is_checked_on_a_copy(tree: Path, tmp_path: Path) -> None:
    found = {}
    for selector in ("subtractionWithPrimaryTensor", "subtractionWithPrimeTensor"):
        path = tmp_path / f"{selector}.patch"
        path.write_text(_PATCH.format(file=f"{OPERATIONS}/Doubled.mm", selector=selector))
        patch = read_patch(path)
        report = check_patches(tree, [patch], target="13.0", folder=tmp_path / "w", reporter=SilentReporter())
        assert not isinstance(report, str), report
        found[selector] = len(report.diagnostics)
        assert report.files == (f"{OPERATIONS}/Doubled.mm",), "named as in the tree, not as the copy"
        assert all(each.file == f"{OPERATIONS}/Doubled.mm" for each in report.diagnostics)
    assert found == {"subtractionWithPrimaryTensor": 0, "subtractionWithPrimeTensor": 1}
    assert (tree / OPERATIONS / "Doubled.mm").read_text() == RIGHT
    (tree / "CMakeLists.txt").unlink()
    assert check_patches(tree, [patch], target="13.0", folder=tmp_path, reporter=SilentReporter()) == NOT_WHOLE


def test_of_patched_files_those_of_mps_are_checked(tree: Path, tmp_path: Path) -> None:
    names = mm_files([f"{OPERATIONS}/Doubled.mm", "aten/src/ATen/native/metal/MetalAten.mm", "c10/util/Half.h"])
    assert names == (f"{OPERATIONS}/Doubled.mm",)
    report = check_tree_files(tree, names, target="13.0", folder=tmp_path / "w", reporter=SilentReporter())
    assert not isinstance(report, str) and report.files == names and report.diagnostics == ()
    (tree / "version.txt").unlink()
    assert "is not a PyTorch tree" in str(
        check_tree_files(tmp_path, names, target="13.0", folder=tmp_path / "w", reporter=SilentReporter())
    )


def test_what_is_missing_is_said(tree: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = str(tree / OPERATIONS / "Doubled.mm")
    for arguments, status, words in (
        ((str(tmp_path / "none.mm"),), 2, "is not a file"),
        ((str(tree / "version.txt"),), 2, "is not Objective-C++"),
        ((file, "--source", str(tmp_path / "none")), 2, "is not a folder"),
        ((file, "--source", str(tmp_path / "torch-2.6.0-cp312-none-macosx_11_0_arm64.whl")), 2, "is not a file"),
        ((file, "--source", str(tmp_path)), 4, "is not a PyTorch tree"),
        ((), 2, "no file and no tree"),
        (("--source", str(tree)), 2, "is not a git repository"),
    ):
        ended, found = _check(tmp_path, *arguments)
        assert (ended, words in found["error"]) == (status, True), found
    (tree / "torchgen/gen.py").write_text("raise SystemExit('no yaml here')\n")
    status, found = _check(tmp_path, file)
    assert status == 4 and "no yaml here" in found["error"]
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    monkeypatch.setenv("MPS_BUILD_CACHE", str(tmp_path / "cache"))
    monkeypatch.setenv("PATH", str(tmp_path))
    status, found = _check(tmp_path, file)
    assert status == 6 and "zig is missing" in found["error"] and "nox -s check_mm" in found["hint"]


def test_a_full_disk_and_a_dead_compiler_are_reported(
    tree: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for text, status, words in (("error: NoSpaceLeft", 19, "no space left"), ("", 6, "did not finish")):
        zig = tmp_path / "zig"
        zig.write_text(f"#!/bin/sh\necho '{text}' >&2\nexit 1\n")
        zig.chmod(0o755)
        monkeypatch.setattr("mps_build.wheel_build.mm.check.find_zig", lambda zig=zig: zig)
        ended, found = _check(tmp_path, str(tree / OPERATIONS / "Doubled.mm"))
        assert (ended, words in found["error"].lower()) == (status, True), found


def test_an_interrupted_preparation_leaves_nothing_half_made(tree: Path, tmp_path: Path) -> None:
    file = str(tree / OPERATIONS / "Doubled.mm")
    generator = (tree / "torchgen/gen.py").read_text()
    (tree / "torchgen/gen.py").write_text(f"{generator}\nraise KeyboardInterrupt\n")
    assert _check(tmp_path, file)[0] == 4
    (tree / "torchgen/gen.py").write_text(generator)
    assert _check(tmp_path, file)[0] == 0
    assert not list((tmp_path / "work/check_mm/headers").glob(".*"))
