"""The tree that the back end is compiled from: Debian's source package or the user's clone, with Linux's patches."""

from __future__ import annotations

import hashlib
import os
import re
import shutil
import sys
import tempfile
from collections.abc import Iterable
from pathlib import Path

from mps_build.common.environment import fetch_environ
from mps_build.common.errors import BuildEnvironmentError, SourceError
from mps_build.common.files import write_whole
from mps_build.common.packed import texts_of
from mps_build.common.process import Command, CommandFailed, capture, run_logged
from mps_build.common.reporting import Reporter
from mps_build.common.workspace import remove_tree
from mps_build.wheel_build.mm.tree import MpsTree, read_tree
from mps_build.wheel_build.patches.apply import apply_patches
from mps_build.wheel_build.patches.file import read_patch
from mps_build.wheel_build.rehearsal.debian_source import original_tarball

from ..releases import Release
from .packages import Apt

# Of the package: host code, its headers, torchgen, Metal kernels as text. No documentation, no tests.
MEMBERS = ("aten", "c10", "caffe2", "torch", "torchgen", "third_party", "CMakeLists.txt", "version.txt", "setup.py")
_TEST_MEMBERS = ("test", "pytest.ini")
_MARKER, _REGISTERS = ".mps-build-tree", "RegisterMPS"
_GENERATED_FROM = ("torchgen/**/*.py", "aten/src/ATen/native/*.yaml", "aten/src/ATen/templates/*")


def debian_tree(release: Release, folder: Path, *, log: Path, reporter: Reporter) -> Path:
    """Return the release's tree from Debian's source package, unpacked only once.

    Raises:
        SourceError: it could not be had.
    """
    tree = folder / f"pytorch-{release.package.version}"
    return _unpacked(release, folder, tree, MEMBERS, log=log, reporter=reporter)


def debian_tests(release: Release, folder: Path, *, log: Path, reporter: Reporter) -> Path:
    """Return the release's own tests, unpacked only once: a folder that holds `test` and pytest's settings.

    Raises:
        SourceError: they could not be had.
    """
    tree = folder / f"pytorch-tests-{release.package.version}"
    return _unpacked(release, folder, tree, _TEST_MEMBERS, log=log, reporter=reporter)


def _unpacked(
    release: Release, folder: Path, tree: Path, names: tuple[str, ...], *, log: Path, reporter: Reporter
) -> Path:
    """Return the tree, with these members of the source package."""
    package = release.package
    if (tree / _MARKER).is_file():
        return tree
    downloads = folder / f"source-{package.version}"
    apt = Apt(folder / f"apt-{package.suite}", suite=package.suite, log=log, reporter=reporter)
    try:
        apt.fetch_source(f"pytorch={package.version}", downloads)
    except BuildEnvironmentError:
        # An archive may have dropped Debian's own part of an old package; only the release's tarball is used.
        if original_tarball(downloads) is None:
            raise
    tarball = original_tarball(downloads)
    if tarball is None:
        raise SourceError(f"{downloads} has no whole tarball of pytorch {package.version}", hint=f"see {log}")
    remove_tree(tree)
    tree.mkdir()
    reporter.started("Unpack the source package")
    members = [f"{_top(tarball, log)}/{name}" for name in names]
    argv = ("tar", "-xf", str(tarball), "-C", str(tree), "--strip-components=1", *members)
    try:
        run_logged(Command(argv=argv), log=log)
    except CommandFailed as failure:
        raise SourceError(f"{tarball.name} cannot be unpacked: {' '.join(failure.tail[-2:])}") from failure
    (tree / _MARKER).write_text(package.version, encoding="utf-8")
    reporter.done()
    return tree


def _top(tarball: Path, log: Path) -> str:
    """Return the name of the folder that a tarball holds."""
    listed = capture(Command(argv=("sh", "-c", 'tar -tf "$0" | head -1', str(tarball))), timeout_seconds=120)
    if not listed.stdout.strip():
        raise SourceError(f"{tarball.name} is empty or damaged", hint=f"remove it; see {log}")
    return listed.stdout.strip().rstrip("/")


def users_tree(release: Release, source: Path) -> Path:
    """Return a user's clone, if it is of this release.

    Raises:
        SourceError: it is not PyTorch with MPS, or another release.
    """
    if release.is_built:
        return tree_to_build(release.version, source).root
    tree = read_tree(source.resolve())
    if tree.release and tree.release not in (release.version, release.tree_version):
        raise SourceError(
            f"{source} is PyTorch {tree.release}, and Linux's torch of this simulation is {release.version}",
            hint=f"check out v{release.version}, or simulate a release that the tree is of",
        )
    return tree.root


def tree_to_build(version: str, source: Path) -> MpsTree:
    """Return a user's clone whose own torch is to be built, if it is of this release.

    Raises:
        SourceError: it is not PyTorch with MPS, or another release.
    """
    tree = read_tree(source.resolve())
    # Upstream does not raise version.txt for a patch release.
    if tree.release.split(".")[:2] != version.split(".")[:2]:
        raise SourceError(
            f"{source} is PyTorch {tree.release or '(without version.txt)'}, not {version}",
            hint=f"check out v{version}, or name the release that the tree is of",
        )
    return tree


def changed_files(tree: Path, folder: Path) -> dict[str, Path]:
    """Return the copies of the host code's sources that Linux needs changed by rule, by path below the tree."""
    found: dict[str, Path] = {}
    for name in host_files(tree):
        text = (tree / name).read_text(encoding="utf-8", errors="surrogateescape")
        if (ours := linux_text(text)) != text:
            write_if_changed(folder / name, ours.encode("utf-8", "surrogateescape"))
            found[str(name)] = folder / name
    return found


def patched_files(release: Release, tree: Path, folder: Path) -> dict[str, Path]:
    """Return the patched copies of what the release's patches touch, by path below the tree; the tree stays as it is.

    A copy that would not change is not written: what was compiled from it stays fresh.

    Raises:
        PatchError: one does not fit.
    """
    patches = [read_patch(release.patches_root / name) for name in release.patches]
    names = sorted({str(file) for patch in patches for file in patch.files})
    with tempfile.TemporaryDirectory(prefix="mps-simulation-") as scratch:
        trial = Path(scratch)
        for name in names:
            (trial / name).parent.mkdir(parents=True, exist_ok=True)
            if (tree / name).is_file():
                shutil.copy2(tree / name, trial / name)
        apply_patches(trial, release.patches, patches_root=release.patches_root)
        for name in names:
            write_if_changed(folder / name, (trial / name).read_bytes())
    return {name: folder / name for name in names}


def generate(tree: Path, folder: Path, *, log: Path, reporter: Reporter) -> Path:
    """Return the folder of what torchgen makes of a tree with MPS: headers, and RegisterMPS.cpp.

    Raises:
        SourceError: torchgen failed.
    """
    home = folder / _digest(tree)
    if home.is_dir():
        return home
    beside = home.with_name(f".{home.name}.{os.getpid()}")
    remove_tree(beside)
    (beside / "ATen").mkdir(parents=True)
    reporter.started("Generate the operators' registrations")
    options = ("--per-operator-headers", "--mps", "--generate", "headers", "sources")
    places = ("--source-path", str(tree / "aten/src/ATen"), "--install_dir", str(beside / "ATen"))
    environ = {**fetch_environ(os.environ), "PYTHONPATH": str(tree), "PYTHONDONTWRITEBYTECODE": "1"}
    command = Command(argv=(sys.executable, "-m", "torchgen.gen", *places, *options), cwd=beside, environ=environ)
    try:
        run_logged(command, log=log, timeout_seconds=1200)
    except CommandFailed as failure:
        remove_tree(beside)
        raise SourceError(f"torchgen of {tree} failed: {' '.join(failure.tail[-1:])}", hint=f"see {log}") from failure
    for path in (beside / "ATen").glob("*.cpp"):
        if not path.name.startswith(_REGISTERS):
            path.unlink()
    beside.rename(home)
    reporter.done()
    return home


def _digest(tree: Path) -> str:
    digest = hashlib.sha256(b"1")
    for path in (path for pattern in _GENERATED_FROM for path in sorted(tree.glob(pattern)) if path.is_file()):
        digest.update(os.fsencode(f"{path.relative_to(tree)}\0"))
        digest.update(path.read_bytes())
    return digest.hexdigest()[:16]


def write_if_changed(path: Path, data: bytes) -> None:
    """Write a file unless it holds these bytes already."""
    if not path.is_file() or path.read_bytes() != data:
        write_whole(path, data)


def mirrored(source: Path, target: Path) -> Path:
    """Return a folder that holds what another does, with its dates where a file did not change."""
    texts = texts_of(source)
    for path in [path for path in target.rglob("*") if path.is_file()]:
        if path.relative_to(target).as_posix() not in texts:
            path.unlink()
    for name, text in texts.items():
        write_if_changed(target / name, text.encode())
    return target


def host_files(tree: Path) -> Iterable[Path]:
    """Return the sources of the MPS back end, below the tree: what lies in a folder `mps` of ATen."""
    base = tree / "aten/src/ATen"
    known = [base / each for each in ("mps", "native/mps", "native/mps/operations")]
    later = {path.parent for path in base.glob("**/mps/**/*.mm")} - set(known)  # native/sparse/mps from 2.8 on
    for folder in (*known, *sorted(later)):
        for suffix in (".mm", ".cpp"):
            yield from (path.relative_to(tree) for path in sorted(folder.glob(f"*{suffix}")))


def registrations(generated: Path) -> list[Path]:
    """Return what torchgen made for MPS: one file, which has a number from 2.7 on.

    Raises:
        SourceError: it made none.
    """
    found = sorted((generated / "ATen").glob(f"{_REGISTERS}*.cpp"))
    if not found:
        raise SourceError(f"torchgen wrote no {_REGISTERS}*.cpp into {generated}", hint="is MPS in its --help?")
    return found


# What is left as it is comes first: raw text (a Metal kernel), text, characters, comments.
_TOKEN = re.compile(
    r'R"(?P<mark>\w*)\(.*?\)(?P=mark)"'
    r'|"(?:\\.|[^"\\\n])*"'
    r"|'(?:\\.|[^'\\\n])+'"
    r"|//[^\n]*"
    r"|/\*.*?\*/"
    r"|(?P<type>\b(?:unsigned[ \t]+)?long[ \t]+long(?:[ \t]+int)?\b)"
    r"|\b(?P<number>0[xX][0-9a-fA-F]+|\d+)(?P<suffix>[uU]?(?:LL|ll)|(?:LL|ll)[uU])\b",
    re.DOTALL,
)
# EmptyTensor.cpp asks for macOS where it means MPS.
_MACOS = re.compile(r"#if defined\(__APPLE__\)\n#if __is_target_os\(macOS\)\n")
_MPS = "#if defined(USE_MPS)\n#if defined(USE_MPS)\n"


def linux_text(text: str) -> str:
    """Return a source as Linux takes it; the same text where nothing needs to change.

    >>> linux_text('std::max(n, 1LL); std::vector<long long> x; // long long')
    'std::max(n, int64_t(1)); std::vector<int64_t> x; // long long'
    """
    return _TOKEN.sub(_named, _MACOS.sub(_MPS, text))


def _named(found: re.Match[str]) -> str:
    if found["type"]:
        return "uint64_t" if found["type"].startswith("unsigned") else "int64_t"
    if found["number"]:
        return f"{'uint64_t' if 'u' in found['suffix'].lower() else 'int64_t'}({found['number']})"
    return found[0]
