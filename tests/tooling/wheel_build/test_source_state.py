"""A pinned tree holds the bytes of its commit, whatever the caller's git is set to; and no setting hides a change."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from git_history import ENVIRON, git, repository
from mps_build.common.environment import fetch_environ
from mps_build.common.errors import SourceError, UsageError
from mps_build.common.git import STAYING, answer
from mps_build.common.git import git as our_git
from mps_build.common.reporting import SilentReporter
from mps_build.wheel_build.artifacts import SourceTree
from mps_build.wheel_build.source_state import restore, source_state
from mps_build.wheel_build.steps.prepare_source import fetch_source, resolve_ref

FILES = {
    "unix.txt": "a\nb\n",
    "dos.txt": "a\r\nb\r\n",
    "kept.bat": "a\nb\n",
    "x.evil": "a\n",
    "ident.c": "$Id$\n",
    "sub/tool.sh": "#!/bin/sh\n",
    ".gitattributes": "*.bat text eol=crlf\n*.evil filter=evil\n",
    ".gitignore": "*.o\n",
}


@pytest.fixture
def served(tmp_path: Path) -> tuple[Path, str]:
    """A repository with a submodule, a link and a program."""
    repository(tmp_path / "served" / "leaf", {"leaf.txt": "leaf\n"})
    top = tmp_path / "served" / "top"
    repository(top, FILES, {"third_party/leaf": tmp_path / "served" / "leaf"})
    (top / "link").symlink_to("unix.txt")
    (top / "sub" / "tool.sh").chmod(0o755)
    git(top, "add", "-A")
    git(top, "commit", "-q", "-m", "second")
    return top, git(top, "rev-parse", "HEAD")


def fetched(tmp_path: Path, served: tuple[Path, str], **environ: str) -> SourceTree:
    return fetch_source(
        repository=str(served[0]),
        commit=served[1],
        tag=None,
        destination=tmp_path / "tree",
        cache=tmp_path / "cache",
        environ={**ENVIRON, **environ},
        log=tmp_path / "log",
        reporter=SilentReporter(),
    )


def changes(tree: SourceTree, **environ: str) -> tuple[str, ...]:
    pinned = {"": str(tree.commit), **tree.submodules}
    return source_state(tree.root, pinned, environ={**ENVIRON, **environ})[0]


def hostile_home(home: Path) -> dict[str, str]:
    """Fill a home whose git changes what it writes and hides what it sees; return the settings, for variables too."""
    attributes, ignored = home / ".config" / "git" / "attributes", home / ".config" / "git" / "ignore"
    attributes.parent.mkdir(parents=True)
    attributes.write_text("* text eol=crlf\n*.c ident\n", encoding="utf-8")
    ignored.write_text("*\n", encoding="utf-8")
    hook = home / "hooks" / "post-checkout"
    hook.parent.mkdir()
    hook.write_text("#!/bin/sh\necho changed >> unix.txt\n", encoding="utf-8")
    hook.chmod(0o755)
    (home / "template" / "info").mkdir(parents=True)
    (home / "template" / "info" / "attributes").write_text("* text eol=crlf\n", encoding="utf-8")
    return {
        "core.autocrlf": "true",
        "core.eol": "crlf",
        "core.attributesFile": str(attributes),
        "core.excludesFile": str(ignored),
        "core.hooksPath": str(hook.parent),
        "core.symlinks": "false",
        "init.templateDir": str(home / "template"),
        "filter.evil.smudge": "sed s/a/changed/",
        "filter.evil.clean": "sed s/changed/a/",
        "filter.evil.required": "true",
        "status.showUntrackedFiles": "no",
        "color.ui": "always",
        "log.showSignature": "true",
        "submodule.recurse": "true",
    }


@pytest.mark.parametrize("way", ["~/.gitconfig", "GIT_CONFIG_GLOBAL", "GIT_CONFIG_SYSTEM", "GIT_CONFIG_COUNT"])
def test_the_callers_settings_change_no_byte_and_hide_no_change(
    way: str, served: tuple[Path, str], tmp_path: Path
) -> None:
    home = tmp_path / "home"
    settings = hostile_home(home)
    file = home / (".gitconfig" if way.startswith("~") else "settings")
    environ = {"HOME": str(home), "XDG_CONFIG_HOME": str(home / ".config"), "GIT_CONFIG_GLOBAL": str(home / "none")}
    if way == "GIT_CONFIG_COUNT":
        environ[way] = str(len(settings))
        for number, (name, value) in enumerate(settings.items()):
            environ |= {f"GIT_CONFIG_KEY_{number}": name, f"GIT_CONFIG_VALUE_{number}": value}
    else:
        for name, value in settings.items():
            subprocess.run(["git", "config", "--file", str(file), name, value], check=True)
        environ |= {"GIT_CONFIG_GLOBAL": str(file)} if way.startswith("~") else {way: str(file)}
    tree = fetched(tmp_path, served, **environ)

    expected = {**FILES, "kept.bat": "a\r\nb\r\n", "third_party/leaf/leaf.txt": "leaf\n"}  # as the commit itself asks
    found = {name: (tree.root / name).read_bytes().decode() for name in expected}
    assert found == expected
    assert (tree.root / "link").readlink() == Path("unix.txt")
    assert os.access(tree.root / "sub" / "tool.sh", os.X_OK)
    assert changes(tree, **environ) == ()

    (tree.root / "unix.txt").write_bytes(b"a\r\nb\r\n")
    (tree.root / "x.evil").write_bytes(b"changed\n")
    (tree.root / "new.mm").touch()
    (tree.root / "third_party" / "leaf" / "new.mm").touch()
    assert changes(tree, **environ) == ("new.mm", "third_party/leaf/new.mm", "unix.txt", "x.evil")


def _with_flag(flag: str) -> Callable[[Path], None]:
    def change(root: Path) -> None:
        git(root, "update-index", flag, "unix.txt")
        (root / "unix.txt").write_bytes(b"c\n")

    return change


def _with_setting(name: str, value: str) -> Callable[[Path], None]:
    def change(root: Path) -> None:
        git(root, "config", name, value)
        (root / "unix.txt").write_bytes(b"a\r\nb\r\n")

    return change


def _with_a_filter(root: Path) -> None:
    git(root, "config", "filter.evil.clean", "printf 'a\\nb\\n'")
    (root / ".git" / "info").mkdir(exist_ok=True)
    (root / ".git" / "info" / "attributes").write_text("unix.txt filter=evil\n", encoding="utf-8")
    (root / "unix.txt").write_bytes(b"anything")


def _as_a_replaced_commit(root: Path) -> None:
    (root / "unix.txt").write_bytes(b"c\n")
    git(root, "add", "-A")
    other = git(root, "commit-tree", "-m", "other", git(root, "write-tree"))
    git(root, "replace", "HEAD", other)


def _of_the_same_size_and_date(root: Path) -> None:
    before = (root / "unix.txt").stat()
    (root / "unix.txt").write_bytes(b"c\nd\n")
    os.utime(root / "unix.txt", ns=(before.st_atime_ns, before.st_mtime_ns))


def _as_a_link_to_the_same(root: Path) -> None:
    (root / "unix.txt").rename(root.parent / "elsewhere.txt")
    (root / "unix.txt").symlink_to(root.parent / "elsewhere.txt")


def _as_a_program(root: Path) -> None:
    (root / "unix.txt").chmod(0o755)


CHANGED: dict[str, Callable[[Path], None]] = {
    "assume-unchanged": _with_flag("--assume-unchanged"),
    "skip-worktree": _with_flag("--skip-worktree"),
    "autocrlf in the repository": _with_setting("core.autocrlf", "true"),
    "a filter in the repository": _with_a_filter,
    "a replaced commit": _as_a_replaced_commit,
    "same size, same date": _of_the_same_size_and_date,
    "a link to the same bytes": _as_a_link_to_the_same,
    "a right to be executed": _as_a_program,
}


def test_no_setting_of_the_repository_hides_a_changed_file(served: tuple[Path, str], tmp_path: Path) -> None:
    tree = fetched(tmp_path, served)
    hidden = []
    for number, (name, change) in enumerate(CHANGED.items()):
        root = tmp_path / f"copy{number}"
        subprocess.run(["cp", "-a", str(tree.root), str(root)], check=True)
        change(root)
        if "unix.txt" not in source_state(root, {"": str(tree.commit)}, environ=ENVIRON)[0]:
            hidden.append(name)
    assert hidden == []


def test_a_folder_that_became_a_link_is_a_change(served: tuple[Path, str], tmp_path: Path) -> None:
    tree = fetched(tmp_path, served)
    (tree.root / "sub").rename(tmp_path / "elsewhere")
    (tree.root / "sub").symlink_to(tmp_path / "elsewhere")

    assert changes(tree) == ("sub", "sub/tool.sh")


def test_no_list_of_the_repository_hides_a_new_file(served: tuple[Path, str], tmp_path: Path) -> None:
    tree = fetched(tmp_path, served)
    (tree.root / ".git" / "info").mkdir(exist_ok=True)
    (tree.root / ".git" / "info" / "exclude").write_text("*.mm\n", encoding="utf-8")
    git(tree.root, "config", "status.showUntrackedFiles", "no")
    (tree.root / "new.mm").touch()
    (tree.root / "staged.mm").touch()
    (tree.root / "product.o").touch()  # the commit's own .gitignore
    (tree.root / "sub" / "hidden.mm").touch()
    (tree.root / "sub" / ".gitignore").write_text("*\n", encoding="utf-8")
    git(tree.root, "add", "--force", "staged.mm")
    assert changes(tree) == ("new.mm", "staged.mm", "sub/.gitignore")

    (tree.root / ".git" / "info" / "exclude").unlink()
    (tree.root / "sub" / ".gitignore").unlink()
    restore(tree.root, environ=ENVIRON, submodules=tree.submodules)
    assert changes(tree) == ()


def test_a_renamed_staged_file_is_named_by_both_names(served: tuple[Path, str], tmp_path: Path) -> None:
    tree = fetched(tmp_path, served)
    git(tree.root, "mv", "unix.txt", "other.txt")

    assert changes(tree) == ("other.txt", "unix.txt")


def test_a_repository_within_the_tree_hides_no_file_of_it(served: tuple[Path, str], tmp_path: Path) -> None:
    tree = fetched(tmp_path, served)
    inner = tree.root / "sub" / "inner"
    inner.mkdir()
    git(inner, "init", "-q")
    (inner / "evil.h").write_text("1\n", encoding="utf-8")
    assert changes(tree) == ("sub/inner/evil.h",)

    pinned = {"": str(tree.commit), **tree.submodules}
    before = source_state(tree.root, pinned, environ=ENVIRON)[1]
    (inner / "evil.h").write_text("2\n", encoding="utf-8")
    assert source_state(tree.root, pinned, environ=ENVIRON)[1] != before


def test_what_is_taken_back_is_the_trees_own_whatever_worktree_its_settings_name(
    served: tuple[Path, str], tmp_path: Path
) -> None:
    tree = fetched(tmp_path, served)
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    (elsewhere / "mine").write_text("a day's work\n", encoding="utf-8")
    git(tree.root, "config", "core.worktree", str(elsewhere))
    (tree.root / "unix.txt").write_text("evil\n", encoding="utf-8")

    restore(tree.root, environ=ENVIRON, submodules=tree.submodules)

    assert (elsewhere / "mine").is_file()
    assert changes(tree) == ()


def test_names_of_any_bytes_are_compared(tmp_path: Path) -> None:
    names = [b"latin-\xe9.txt", b"blank and\ttab", b"line\nbreak", "ü".encode()]
    top = tmp_path / "served"
    repository(top, {"a": "a"})
    for name in names:
        Path(os.fsdecode(os.fsencode(top) + b"/" + name)).write_text("x", encoding="utf-8")
    git(top, "add", "-A")
    git(top, "commit", "-q", "-m", "names")
    tree = fetched(tmp_path, (top, git(top, "rev-parse", "HEAD")))
    assert changes(tree) == ()

    Path(os.fsdecode(os.fsencode(tree.root) + b"/" + names[0])).write_text("y", encoding="utf-8")
    assert [os.fsencode(name) for name in changes(tree)] == [names[0]]


def test_a_tree_that_git_did_not_write_as_its_commit_is_refused(
    served: tuple[Path, str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from mps_build.common.git import Mirror

    whole = Mirror.check_out

    def cut(mirror: Mirror, commit: str, destination: Path) -> None:
        whole(mirror, commit, destination)
        if (destination / "unix.txt").is_file():
            (destination / "unix.txt").write_bytes(b"")

    monkeypatch.setattr(Mirror, "check_out", cut)
    with pytest.raises(SourceError, match=re.escape("is not what its commit holds: 1 files differ: unix.txt")):
        fetched(tmp_path, served)


def test_what_leads_to_a_server_stays_and_is_in_no_argument(
    served: tuple[Path, str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)  # a clone may have settings of its own
    file = tmp_path / "settings"
    settings = {
        f"url.{served[0].parent}/.insteadOf": "https://example.org/",
        "http.https://example.org/.extraHeader": "Authorization: secret",
        "http.proxy": "http://proxy:1",
        "credential.helper": "store",
        "core.sshCommand": "ssh -4",
        "safe.directory": "*",
        "diff.external": "false",
        "user.name": "someone",
    }
    for name, value in settings.items():
        subprocess.run(["git", "config", "--file", str(file), name, value], check=True)
    environ = fetch_environ({**ENVIRON, "GIT_CONFIG_GLOBAL": str(file)})

    assert resolve_ref("https://example.org/top", "main", environ=environ) == served[1]
    command = our_git("config", "--list", "--name-only", environ=environ)
    assert "secret" not in str(command)
    names = {name.lower() for name in answer(command).splitlines()}
    assert {name.lower() for name in settings} - names == {"diff.external", "user.name"}


def test_settings_that_git_cannot_read_are_named(tmp_path: Path) -> None:
    (tmp_path / "settings").write_text("[core\n", encoding="utf-8")
    with pytest.raises(SourceError, match=r"git cannot read your settings: .*settings"):
        our_git("status", environ={**ENVIRON, "GIT_CONFIG_GLOBAL": str(tmp_path / "settings")})


def test_the_page_lists_what_stays() -> None:
    page = (Path(__file__).parents[3] / "docs" / "security.md").read_text(encoding="utf-8")
    section = page.split("## What git gets of the caller's settings", 1)[1].split("\n## ", 1)[0]
    rows = re.findall(r"^\| `(.+?)` \|", section, re.MULTILINE)
    assert rows == list(STAYING)


def test_a_name_is_a_branch_or_a_tag_and_no_other_that_ends_so(served: tuple[Path, str]) -> None:
    top, commit = served
    first = git(top, "rev-parse", "HEAD~1")
    for ref in ("refs/heads/a/v2", "refs/tags/b/v2", "refs/other/v2"):
        git(top, "update-ref", ref, first)
    with pytest.raises(SourceError, match="no branch or tag 'v2'"):
        resolve_ref(str(top), "v2", environ=ENVIRON)

    git(top, "tag", "v2", commit)
    for ref in ("v2", "refs/tags/v2"):
        assert resolve_ref(str(top), ref, environ=ENVIRON) == commit
    git(top, "branch", "v2", first)
    with pytest.raises(UsageError, match="'v2' is a branch and a tag") as refused:
        resolve_ref(str(top), "v2", environ=ENVIRON)
    assert refused.value.hint == "say which: refs/heads/v2 or refs/tags/v2"
    assert resolve_ref(str(top), "refs/heads/v2", environ=ENVIRON) == first
    assert resolve_ref(str(top), "HEAD", environ=ENVIRON) == commit


def test_a_umask_of_000_makes_nothing_that_others_can_write(tmp_path: Path) -> None:
    program = (
        "import os, sys\nfrom mps_build.cli import main\nfor umask in sys.argv[1:]:\n os.umask(int(umask, 8))\n"
        " main('lock', ['--help'])\n print('is', oct(os.umask(0)))\n"
        "os.umask(0); main('build_wheel', ['sample', '--dry-run'])"
    )
    environ = {
        **os.environ,
        "PYTHONPATH": os.pathsep.join(filter(None, sys.path)),
        "MPS_BUILD_CACHE": str(tmp_path / "c"),
    }
    argv = [sys.executable, "-c", program, "000", "002", "077", "020"]
    done = subprocess.run(argv, env=environ, cwd=tmp_path, capture_output=True, text=True, check=True)
    assert re.findall("^is (.*)$", done.stdout, re.MULTILINE) == ["0o22", "0o2", "0o77", "0o22"]
    writable = [path for path in (tmp_path / "c").rglob("*") if not path.is_symlink() and path.stat().st_mode & 0o002]
    assert (tmp_path / "c").is_dir() and not writable
