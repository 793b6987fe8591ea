"""Recipes: every fault at once with file, line and key; ours hold the facts that are evidenced."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path

import pytest
from mps_build.common.errors import UsageError
from mps_build.common.recipe.catalogue import load_recipe, recipes_root

V2_6 = recipes_root() / "v2.6.0.yaml"
DEFAULTS = recipes_root() / "defaults.yaml"


def _faults(tmp_path: Path, edit: Callable[[str], str]) -> str:
    """Return what is said of v2.6.0.yaml and of the defaults that it extends after `edit` of both."""
    before = [path.read_text() for path in (V2_6, DEFAULTS)]
    after = [edit(text) for text in before]
    assert after != before
    for name, text in zip(("mine.yaml", "defaults.yaml"), after, strict=True):
        (tmp_path / name).write_text(text)
    with pytest.raises(UsageError) as caught:
        load_recipe(tmp_path / "mine.yaml", defaults=tmp_path / "defaults.yaml")
    return str(caught.value)


def _replaced(old: str, new: str) -> Callable[[str], str]:
    return lambda text: text.replace(old, new, 1)


def _row(name: str, value: str) -> str:
    return f'  - name: {name}\n    value: {value}\n    reason: "for a test"'


def _line_of(text: str, path: Path = V2_6) -> int:
    return next(number for number, line in enumerate(path.read_text().splitlines(), 1) if text in line)


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ('version: "2.6.0"', "version: 2.10", 'version: must be text: write it in quotes, "2.10"'),
        ('mps_floor: "13.0"', "mps_floor: 13.0", "mps_floor: must be text"),
        ('"3.9", ', "3.10, ", "pythons.0: must be text"),
        ('mps_floor: "13.0"', 'mps_floor: "13.0"\nmps_floor: "14.0"', "mps_floor: duplicate key, first given in line"),
        ("backend: setuptools", "backend: setuptools\nbackendd: x", "backendd: unknown key"),
        ("  openmp: true", "  openmp: true\n  omp: true", "gate.omp: unknown key"),
        ("backend: setuptools\n", "", "backend: is missing"),
        ("backend: setuptools", "backend: bazel", "backend: input should be 'setuptools' or 'scikit-build-core'"),
        ("7340\n", "734\n", "commit: string should match pattern"),
        ("commit: 1eba9b3", "commit: 1EBA9B3", "commit: string should match pattern"),
        ("commit: 1eba9b3aa3c43f86f4a2c807ac8e12c4a7767340", "commit: null", "commit: must be given where evidence"),
        ("evidence: tag", "evidence: caller", "commit: must be null where the caller gives it"),
        ("tag: v2.6.0", "tag: null", "tag: must be given where evidence is 'tag'"),
        ('default_python: "3.12"', 'default_python: "3.14"', "default_python: '3.14' is not among pythons"),
        ('"3.9", ', '"3.12", ', "pythons.3: '3.12' is given two times"),
        ('"3.9", ', '"3.12.1", ', "pythons.0: string should match pattern"),
        (
            "libomp-rpath-2.4.patch",
            "libomp-rpath-2.5.patch",
            "'libomp-rpath-2.5.patch' is not in patches/; is",
        ),
        ("libomp-rpath-2.4.patch", "../libomp.patch", "patches.0: string should match pattern"),
        (
            "libomp-rpath-2.4.patch",
            "blas-check-function.patch",
            "patches.2: 'blas-check-function.patch' is given two times",
        ),
        ('deployment_target: "13.0"', 'deployment_target: "13.3"', "deployment_target: must be X.0, not '13.3'"),
        ('deployment_target: "13.0"', 'deployment_target: "13"', "deployment_target: must be X.0, not '13'"),
        # More digits than Python makes an integer of; packaging's Version then raises a bare ValueError.
        ('deployment_target: "13.0"', f'deployment_target: "{"9" * 5000}"', "deployment_target: string should match"),
        ('minos: "11.0"', f'minos: "{"9" * 5000}"', "libomp.minos: string should match pattern"),
        ('deployment_target: "13.0"', 'deployment_target: "10.9"', "is below 11.0, the first macOS on Apple silicon"),
        (
            'deployment_target: "13.0"',
            'deployment_target: "12.0"',
            "is below the macOS that metal_basic is compiled for",
        ),
        ('minos: "11.0"', 'minos: "14.0"', "deployment_target: '13.0' is below libomp's minimum macOS, 14.0"),
        ("from: deployment_target", 'value: "14.0"', "MACOSX_DEPLOYMENT_TARGET must be '13.0', by deployment_target"),
        ("from: version", 'value: "2.5.1"', "PYTORCH_BUILD_VERSION must be '2.6.0', the recipe's version"),
        ("from: host_platform", "value: macosx-13_0-arm64", "_PYTHON_HOST_PLATFORM must be 'macosx-13.0-arm64'"),
        ('value: "-arch arm64"', 'value: "-arch;arm64"', "ARCHFLAGS holds `;` or a line end"),
        ("name: ARCHFLAGS", "name: USE_MPS", "environment.3.name: USE_MPS is set two times"),
        ("name: ARCHFLAGS", "name: ARCH-FLAGS", "environment.3.name: string should match pattern"),
        ("can_compile_metal: true", "can_compile_metal: false", "must be true where the wheel must hold metal_basic"),
        ("metal_compiler: required", "metal_compiler: unused", "host.metal_compiler: must be `required`"),
        ("  repository: https://github.com/pytorch/pytorch.git", "  kind: git", "source.repository: is missing"),
        ('  - "ninja"', '  - "ninja>>1"', "build_requirements.4: is not a requirement"),
        ("use_mps: true", 'use_mps: "true"', "gate.use_mps: input should be a valid boolean"),
        ("sha256: 74dd", "sha256: 74d", "libomp.sha256: string should match pattern"),
        ("from: version", "from: commit", "environment.4.from: must be one of version, deployment_target, host_plat"),
        ("from: version", "from: [version]", "environment.4.from: must be one of version"),
        (
            "from: version",
            'from: version\n    value: "2.6.0"',
            "environment.4.from: does not go with a value of its own",
        ),
        ("extends: defaults.yaml", "extends: v2.5.1.yaml", "extends: must be defaults.yaml, the file beside"),
        (
            "patches:\n",
            f"environment:\n{_row('USE_MPI', 'null')}\npatches:\n",
            "is null, but defaults.yaml sets no USE_MPI",
        ),
        (
            "patches:\n",
            "environment:\n  - name: USE_MPS\n    value: null\npatches:\n",
            "environment.0: is dropped (value",
        ),
        (
            "patches:\n",
            f"environment:\n{_row('USE_MPS', '1')}\npatches:\n",
            "environment.0.value: must be text: write it",
        ),
        ("patches:\n", "environment: 1\npatches:\n", "environment: input should be a valid"),
        ("source:", "extends: defaults.yaml\nsource:", "extends: unknown key"),
    ],
)
def test_a_fault_is_named_with_its_file_line_and_key(tmp_path: Path, old: str, new: str, message: str) -> None:
    said = _faults(tmp_path, _replaced(old, new))

    place = rf"{re.escape(str(tmp_path))}/(mine|defaults)\.yaml:\d+: "
    assert re.search(rf"(?m)^ *{place}.*{re.escape(message)}", said), said


def test_the_line_is_the_one_of_the_fault(tmp_path: Path) -> None:
    said = _faults(tmp_path, _replaced('mps_floor: "13.0"', "mps_floor: 13.0"))

    assert f"mine.yaml:{_line_of('mps_floor:')}: mps_floor: " in said


def test_a_fault_of_the_defaults_is_reported_with_their_file_and_line(tmp_path: Path) -> None:
    said = _faults(tmp_path, _replaced('value: "OFF"', "value: 0"))

    where = tmp_path / "defaults.yaml"
    assert f"{where}:{_line_of('OFF', DEFAULTS)}: environment.10.value: must be text" in said
    assert said.startswith(f"1 fault in {where}:")


def test_a_missing_key_is_missing_in_the_file_that_has_the_rest(tmp_path: Path) -> None:
    """gate is in both: what both lack is the recipe's to say; libomp is in the defaults alone."""
    said = _faults(tmp_path, lambda text: text.replace("  openmp: true\n", "").replace('  minos: "11.0"\n', ""))

    recipe, defaults = tmp_path / "mine.yaml", tmp_path / "defaults.yaml"
    assert said.startswith(f"3 faults in {recipe} and {defaults}:")
    assert f"{recipe}:{_line_of('gate:')}: gate.openmp: is missing" in said
    assert f"{defaults}:{_line_of('libomp:', DEFAULTS)}: libomp.minos: is missing" in said


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "is empty"),
        ("- a\n", "the document: must be a mapping"),
        ("a: [\n", "is not YAML"),
        ("a: 1\na: 2\n", "two times"),
    ],
)
def test_defaults_that_are_none_are_reported(tmp_path: Path, text: str, message: str) -> None:
    (tmp_path / "defaults.yaml").write_text(text)

    with pytest.raises(UsageError, match=message.replace("two times", "duplicate key")) as caught:
        load_recipe(V2_6, defaults=tmp_path / "defaults.yaml")

    assert f"{tmp_path}/defaults.yaml" in str(caught.value)


def test_all_faults_are_reported_at_once_in_the_order_of_their_lines(tmp_path: Path) -> None:
    def edit(text: str) -> str:
        text = text.replace("7340\n", "734\n").replace('default_python: "3.12"', 'default_python: "3.14"')
        text = text.replace("backend: setuptools", "backend: setuptools\nbackendd: x")
        return text.replace("blas-check-function.patch", "no-such.patch").replace('minos: "11.0"', 'minos: "14.0"')

    said = _faults(tmp_path, edit)

    assert said.startswith("5 faults in ")
    order = ["commit:", "default_python:", "deployment_target:", "backendd:", "patches.2:"]
    assert [next(index for index, line in enumerate(said.splitlines()) if key in line) for key in order] == [
        1,
        2,
        3,
        4,
        5,
    ]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "is empty"),
        ("- a\n- b\n", "must be a mapping"),
        ("version: [\n", r"mine.yaml:\d+: is not YAML"),
        ("a: &x [1]\nb: *x\n", r"mine.yaml:2: aliases \(\*x\) are not read"),
        ("a: 2025-13-45\n", "holds an impossible value"),
        ("[" * 300_000, "nested too deeply"),
        ("a: 1\n---\nb: 2\n", "is not YAML"),
        ("? [a]\n: b\n", "is not YAML"),
        ("\0", "is not YAML"),
    ],
)
def test_what_is_no_recipe_at_all_is_reported_and_never_a_traceback(tmp_path: Path, text: str, message: str) -> None:
    path = tmp_path / "mine.yaml"
    path.write_text(text)

    with pytest.raises(UsageError, match=message):
        load_recipe(path)


def test_a_file_that_is_no_text_is_reported(tmp_path: Path) -> None:
    path = tmp_path / "mine.yaml"
    path.write_bytes(b"\xff\xfe\x00")

    with pytest.raises(UsageError, match="cannot be read"):
        load_recipe(path)


@pytest.mark.parametrize("name", ["9" * 5000 + ".patch", "../README.md", "/etc/hostname", "a\\0.patch", "."])
def test_a_patch_is_a_file_of_the_folder_and_nothing_else(tmp_path: Path, name: str) -> None:
    path = tmp_path / "mine.yaml"
    path.write_text(V2_6.read_text().replace("patches:\n", f'patches:\n  - "{name}"\n', 1))

    with pytest.raises(UsageError, match=r"is not in patches/"):
        load_recipe(path)
