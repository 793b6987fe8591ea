"""Small git repositories, a patch, and the long histories and tiny wheels that a bisection searches."""

from __future__ import annotations

import hashlib
import os
import subprocess
import zipfile
from collections.abc import Iterable
from pathlib import Path

ENVIRON = {
    **{name: value for name, value in os.environ.items() if not name.startswith("GIT_")},
    "GIT_AUTHOR_NAME": "a",
    "GIT_AUTHOR_EMAIL": "a@example.org",
    "GIT_COMMITTER_NAME": "a",
    "GIT_COMMITTER_EMAIL": "a@example.org",
    "GIT_AUTHOR_DATE": "2026-01-01T00:00:00Z",
    "GIT_COMMITTER_DATE": "2026-01-01T00:00:00Z",
    "GIT_CONFIG_GLOBAL": os.devnull,
}


def git(root: Path, *arguments: str) -> str:
    argv = ("git", "-c", "protocol.file.allow=always", "-C", str(root), *arguments)
    return subprocess.run(argv, env=ENVIRON, check=True, capture_output=True, text=True).stdout.strip()


def repository(root: Path, files: dict[str, str], submodules: dict[str, Path] | None = None) -> str:
    """Make a repository with one commit and the tag v1; return the commit."""
    root.mkdir(parents=True)
    git(root, "init", "-q", "-b", "main")
    git(root, "config", "uploadpack.allowAnySHA1InWant", "true")
    for name, text in files.items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(text, encoding="utf-8")
    for path, origin in (submodules or {}).items():
        git(root, "submodule", "--quiet", "add", str(origin), path)
    git(root, "add", "-A")
    git(root, "commit", "-q", "-m", "first")
    git(root, "tag", "-a", "v1", "-m", "v1")
    return git(root, "rev-parse", "HEAD")


HEADER = "Description: a test\nOrigin: this test\nForwarded: not-needed\nFixes: none\n\n"
ONE_TO_UNO = """\
diff --git a/src/numbers.txt b/src/numbers.txt
--- a/src/numbers.txt
+++ b/src/numbers.txt
@@ -1,4 +1,4 @@
-one
+uno
 two
 three
 four
"""


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
