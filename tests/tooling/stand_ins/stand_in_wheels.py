"""Wheels of a few hundred bytes that are called torch, and long histories of git, for a bisection to search."""

from __future__ import annotations

import hashlib
import subprocess
import zipfile
from collections.abc import Iterable
from pathlib import Path

from git_history import ENVIRON, git


def commit_of(number: int) -> str:
    """Return the commit that the wheel of that number says it is of."""
    return hashlib.sha1(str(number).encode()).hexdigest()


def write_index(folder: Path, versions: Iterable[str], *, state: dict[str, str], commits: dict[str, str]) -> Path:
    """Write one wheel a version; `torch.state` is what the version answers (good, bad, skip, or any Python)."""
    folder.mkdir(parents=True, exist_ok=True)
    for version in versions:
        info = f"torch-{version}.dist-info"
        files = {
            "torch/__init__.py": f"state = {state[version]!r}\n",
            "torch/version.py": f"__version__ = {version!r}\ngit_version = {commits.get(version, '0' * 40)!r}\n",
            f"{info}/METADATA": f"Metadata-Version: 2.1\nName: torch\nVersion: {version}\n",
            f"{info}/WHEEL": "Wheel-Version: 1.0\nGenerator: a test\nRoot-Is-Purelib: true\nTag: py3-none-any\n",
        }
        record = "".join(f"{name},,\n" for name in [*files, f"{info}/RECORD"])
        with zipfile.ZipFile(folder / f"torch-{version}-py3-none-any.whl", "w") as archive:
            for name, text in {**files, f"{info}/RECORD": record}.items():
                archive.writestr(name, text)
    return folder


def write_history(root: Path, count: int, *, texts: dict[int, dict[str, str]]) -> list[str]:
    """Write a repository of `count` commits in one stroke; `texts` are the files that a commit (by number) changes."""
    root.mkdir(parents=True)
    git(root, "init", "-q", "-b", "main")
    stream = []
    for number in range(count):
        message = f"Change {number} (#{1000 + number})"
        stream.append(f"commit refs/heads/main\nmark :{number + 1}\n")
        stream.append(f"committer a <a@example.org> {1767225600 + number} +0000\ndata {len(message)}\n{message}\n")
        if number:
            stream.append(f"from :{number}\n")
        for name, text in {"number.txt": str(number), **texts.get(number, {})}.items():
            stream.append(f"M 100644 inline {name}\ndata {len(text.encode())}\n{text}\n")
        stream.append("\n")
    argv = ("git", "-C", str(root), "fast-import", "--quiet")
    subprocess.run(argv, input="".join(stream).encode(), env=ENVIRON, check=True)
    return git(root, "rev-list", "--first-parent", "--reverse", "main").split()
