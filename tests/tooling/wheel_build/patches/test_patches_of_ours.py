"""Our own patches, each: what it does to the lines it touches, and on the real trees of 1.13.1 and 2.6.0.

The quick tests need no upstream file: the lines that a hunk expects, its own context, are the file.
"""

from __future__ import annotations

import ast
import json
import os
import shutil
import subprocess
import sys
import tarfile
import textwrap
from pathlib import Path

import pytest
from mps_build.cli import main
from mps_build.common.recipe.catalogue import all_recipes, find_recipe, patches_root
from mps_build.wheel_build.patches.apply import apply_patches
from mps_build.wheel_build.patches.file import Patch, read_patch
from mps_build.wheel_build.patches.trial import survey

OURS = tuple(read_patch(path) for path in sorted(patches_root().glob("*.patch")))
DEBIAN = {"v1.13.1": "pytorch=1.13.1+dfsg-4", "v2.6.0": "pytorch=2.6.0+dfsg-7"}


def _tree_of(patch: Patch, root: Path) -> Path:
    """Write the files that `patch` fits, out of its own context, each hunk at its line."""
    for file in patch.files:
        lines: list[str] = []
        for hunk in (hunk for hunk in patch.hunks if hunk.path == file):
            lines += [""] * (hunk.line - 1 - len(lines)) + list(hunk.before)
        (root / file).parent.mkdir(parents=True, exist_ok=True)
        (root / file).write_text("\n".join(lines) + "\n")
    return root


def _patched(name: str, root: Path) -> str:
    """Return the one file of our patch `name`, patched."""
    patch = read_patch(patches_root() / name)
    apply_patches(_tree_of(patch, root), [name], patches_root=patches_root())
    return (root / patch.files[0]).read_text()


@pytest.mark.parametrize("patch", OURS, ids=lambda patch: patch.name)
def test_a_patch_fits_its_own_context_and_is_recognised_when_it_is_there(patch: Patch, tmp_path: Path) -> None:
    root = _tree_of(patch, tmp_path)
    assert survey(root, [patch])[0].state == "applies"

    apply_patches(root, [patch.name], patches_root=patches_root())

    assert survey(root, [patch])[0].state == "upstream"


@pytest.mark.parametrize("patch", OURS, ids=lambda patch: patch.name)
def test_a_patch_says_why_whose_idea_and_what_upstream_did(patch: Patch) -> None:
    assert "\n" in patch.description, "a summary alone does not say why"
    assert "#" in patch.origin or "commit" in patch.origin or "github.com" in patch.origin or "project" in patch.origin
    assert patch.forwarded.split(",")[0] in ("no", "yes", "not-needed")
    assert patch.fixes or patch.name in (
        "split-build-rpc-2.6.patch",
        "strong-type-trait-1.13.patch",
        "neon-option-1.12.patch",
    )


@pytest.mark.parametrize("name", ["libomp-rpath-2.4.patch", "libomp-rpath-2.7.patch", "libomp-rpath-2.13.patch"])
@pytest.mark.parametrize(
    ("rpaths", "wanted"),
    [
        (["@loader_path", "/omp/lib"], ["-delete_rpath", "/omp/lib"]),
        (["/omp/lib"], ["-rpath", "/omp/lib", "@loader_path"]),
    ],
)
def test_the_rpath_of_libomp_is_deleted_where_loader_path_is_one_already(
    name: str, rpaths: list[str], wanted: list[str], tmp_path: Path
) -> None:
    """Runs the very lines of upstream's function, with install_name_tool's call recorded."""
    body = _patched(name, tmp_path).lstrip("\n")
    if name == "libomp-rpath-2.4.patch":  # the hunk begins inside the call
        body = f"            subprocess.check_call(\n{body}"
    body = textwrap.dedent(body)
    body = body.replace("if Path(rp).resolve() == libomp_dir_real:", "if True:")
    calls: list[list[str]] = []

    class subprocess_stub:  # noqa: N801
        check_call = staticmethod(calls.append)

    names = {"subprocess": subprocess_stub, "rpaths": rpaths, "rpath": "/omp/lib", "rp": "/omp/lib"}
    names |= {"libtorch_cpu_path": "LIB", "libtorch_cpu": "LIB", "install_name_tool_args": None}
    function = "def run():\n for _ in [0]:\n" + "\n".join(f"  {line}" for line in body.splitlines())
    function += "\n return locals().get('install_name_tool_args')"
    ast.parse(function)
    exec(function, names)
    returned = names["run"]()  # type: ignore[operator]

    assert (calls[0][1:-1] if calls else returned) == wanted


FORWARDING = """\
execute_process(COMMAND "${{CMAKE_COMMAND}}" -E environment OUTPUT_VARIABLE _all_env OUTPUT_STRIP_TRAILING_WHITESPACE)
{loop_head}
    if(_var_name MATCHES "^(USE_|BUILD_)" AND NOT DEFINED ${{_var_name}})
      set(${{_var_name}} "${{_var_value}}")
    endif()
  endif()
endforeach()
message(STATUS "USE_MPS=[${{USE_MPS}}] USE_X=[${{USE_X}}]")
"""


def _forwarded(script_head: str, root: Path, environ: dict[str, str]) -> str:
    cmake = shutil.which("cmake") or str(Path(sys.executable).with_name("cmake"))
    (root / "forward.cmake").write_text(FORWARDING.format(loop_head=script_head))
    done = subprocess.run(
        [cmake, "-P", str(root / "forward.cmake")],
        check=False,
        env={"PATH": "/usr/bin", **environ},
        capture_output=True,
        text=True,
    )
    return (done.stdout + done.stderr).strip().removeprefix("-- ")


@pytest.mark.skipif(
    not (shutil.which("cmake") or Path(sys.executable).with_name("cmake").exists()), reason="cmake is not here"
)
@pytest.mark.parametrize(
    ("environ", "before", "after"),
    [
        ({"A": "x[y;z", "USE_MPS": "1"}, "USE_MPS=[] USE_X=[]", "USE_MPS=[1] USE_X=[]"),
        ({"A": "[", "USE_MPS": "1", "Z": "]"}, "USE_MPS=[] USE_X=[]", "USE_MPS=[1] USE_X=[]"),
        ({"USE_MPS": "1", "USE_X": "a;b"}, "USE_MPS=[1] USE_X=[a]", "USE_MPS=[1] USE_X=[a;b]"),
        ({"A": "1\nUSE_MPS=0", "USE_MPS": "1"}, "USE_MPS=[0] USE_X=[]", "USE_MPS=[1] USE_X=[]"),
    ],
)
def test_no_other_variable_can_take_use_mps_away(
    environ: dict[str, str], before: str, after: str, tmp_path: Path
) -> None:
    patch = read_patch(patches_root() / "environment-forwarding-2.12.patch")
    stock = "\n".join(patch.hunks[0].before)
    patched = "\n".join(line[1:] for line in patch.hunks[0].lines if line[:1] in " +")

    assert _forwarded(stock, tmp_path, environ) == before, "the fault is not there any more: is the patch still needed?"
    assert _forwarded(patched, tmp_path, environ) == after


def test_refresh_patches_tells_the_state_of_each_patch(tmp_path: Path) -> None:
    tree = tmp_path / "tree"
    _tree_of(read_patch(patches_root() / "libomp-rpath-2.4.patch"), tree)
    _tree_of(read_patch(patches_root() / "blas-check-function.patch"), tree)
    apply_patches(tree, ["blas-check-function.patch"], patches_root=patches_root())
    broken = tree / "cmake/Dependencies.cmake"
    broken.write_text("something else\n")
    out = tmp_path / "out.json"

    assert main("refresh_patches", [str(tree), "--recipe", "v2.6.0", "--json", str(out)]) == 5

    states = {row["name"]: row for row in json.loads(out.read_text())["patches"]}
    assert states["libomp-rpath-2.4.patch"]["state"] == "applies"
    assert states["blas-check-function.patch"]["state"] == "upstream"
    assert states["environment-forwarding-2.12.patch"]["state"] == "absent"
    conflict = states["tensorpipe-libnop-clang17.patch"]
    assert conflict["state"] == "conflicts"
    assert conflict["hunk"]["file"] == "cmake/Dependencies.cmake"
    assert conflict["listed"]


def test_refresh_patches_reads_a_tag_from_a_repository(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    tree = tmp_path / "upstream"
    for name in find_recipe("2.6").patches + find_recipe("2.6").rehearsal_patches:
        _tree_of(read_patch(patches_root() / name), tree)
    git = ["git", "-C", str(tree), "-c", "user.name=t", "-c", "user.email=t@t"]
    subprocess.run([*git, "init", "-q"], check=True)
    subprocess.run([*git, "add", "."], check=True)
    subprocess.run([*git, "commit", "-q", "-m", "x"], check=True)
    subprocess.run([*git, "tag", "v9.9.9"], check=True)
    monkeypatch.setenv("MPS_BUILD_CACHE", str(tmp_path / "cache"))
    monkeypatch.setenv("MPS_BUILD_WORK", str(tmp_path / "work"))
    arguments = ["v9.9.9", "--recipe", "v2.6.0", "--repository", str(tree)]

    assert main("refresh_patches", arguments) == 0
    assert main("refresh_patches", ["v9.9.8", *arguments[1:]]) == 4


@pytest.fixture(scope="module")
def debian_trees(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """The upstream trees as Debian ships them, fetched by name; MPS_BUILD_TREES names a folder that has them."""
    given = os.environ.get("MPS_BUILD_TREES")
    if given:
        return {name: Path(given) / name.removeprefix("v") for name in DEBIAN}
    if not shutil.which("apt-get"):
        pytest.skip("no apt-get here, and MPS_BUILD_TREES is not set")
    root = tmp_path_factory.mktemp("debian")
    (root / "lists/partial").mkdir(parents=True)
    keyring = "/usr/share/keyrings/debian-archive-keyring.gpg"
    mirror = _debian_mirror()
    suites = "".join(f"deb-src [signed-by={keyring}] {mirror} {suite} main\n" for suite in ("bookworm", "trixie"))
    (root / "sources.list").write_text(suites)
    options = [f"Dir::Etc::sourcelist={root}/sources.list", "Dir::Etc::sourceparts=/dev/null"]
    options += [f"Dir::State::lists={root}/lists", f"Dir::Cache={root}/cache"]
    apt = ["apt-get", "-qq", *(part for option in options for part in ("-o", option))]
    subprocess.run([*apt, "update"], check=True, cwd=root)
    trees: dict[str, Path] = {}
    for name, package in DEBIAN.items():
        folder = root / name
        folder.mkdir()
        subprocess.run([*apt, "source", "--download-only", package], cwd=folder, check=False)
        archive = next(folder.glob("*.orig.tar.xz"))
        with tarfile.open(archive) as tar:
            tar.extractall(folder / "tree", filter="data")
        trees[name] = next(path for path in (folder / "tree").iterdir() if path.is_dir())
    return trees


def _debian_mirror() -> str:
    shown = subprocess.run(
        ["apt-get", "indextargets", "--format", "$(REPO_URI)"], check=False, capture_output=True, text=True
    )
    found = [line for line in shown.stdout.splitlines() if line.rstrip("/").endswith("/debian")]
    if not found:
        pytest.skip("this host's apt names no Debian archive")
    return found[0]


@pytest.mark.slow
@pytest.mark.parametrize("name", sorted(DEBIAN))
def test_every_listed_patch_applies_to_the_real_tree(name: str, debian_trees: dict[str, Path], tmp_path: Path) -> None:
    recipe = find_recipe(name)
    names = recipe.patches + recipe.rehearsal_patches
    patches = [read_patch(patches_root() / patch) for patch in names]
    for file in {file for patch in patches for file in patch.files}:
        (tmp_path / file).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy2(debian_trees[name] / file, tmp_path / file)

    first = apply_patches(tmp_path, names, patches_root=patches_root())
    again = apply_patches(tmp_path, names, patches_root=patches_root())

    assert not first.already
    assert again.already
    for path in tmp_path.rglob("*.py"):
        ast.parse(path.read_text())


@pytest.mark.slow
def test_old_and_new_rpath_patches_fit_only_their_own_era(debian_trees: dict[str, Path]) -> None:
    states = {one.patch.name: one.state for one in survey(debian_trees["v2.6.0"], [], OURS)}

    assert states["libomp-rpath-2.4.patch"] == "applies"
    assert states["libomp-rpath-2.7.patch"] == "conflicts"
    assert states["libomp-rpath-2.13.patch"] == "absent"
    listed = set(find_recipe("2.6").patches + find_recipe("2.6").rehearsal_patches)
    assert {name for name, state in states.items() if state == "applies"} == listed
    assert all(recipe.patches for recipe in all_recipes() if recipe.backend == "setuptools")
