"""Small git repositories for tests, served from a folder."""

from __future__ import annotations

import os
import subprocess
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
