"""Bisections for real: pip on a folder of 42 small wheels, then git on a history of 220 commits."""

from __future__ import annotations

import json
import math
import sys
from dataclasses import dataclass
from pathlib import Path

import pytest
from git_history import git, write_history, write_index
from mps_build import cli
from mps_build.common.errors import UsageError
from mps_build.verify.bisection.commits import History, own_builder
from mps_build.verify.bisection.runner import Answer, Bisection, CannotTest, Prepared
from mps_build.verify.bisection.search import Span
from mps_build.verify.bisection.state import State
from packaging.version import Version

CHECK = """
import os, sys
try:
    import torch
    state = torch.state
except ImportError:
    state = open("state.txt").read().strip()
if state == "flaky":  # wrong at every third question
    counter = os.environ["COUNTER"]
    asks = len(open(counter).read()) if os.path.exists(counter) else 0
    open(counter, "a").write("x")
    state = "bad" if asks % 3 == 1 else "good"
sys.exit({"good": 0, "bad": 1, "skip": 125}[state])
"""
MPS = "aten/src/ATen/native/mps/operations/Linear.mm"


@dataclass
class TreeOfCommits:
    """Asks each commit by what its tree says."""

    history: History
    said: dict[str, str]

    def prepare(self, subject: str) -> Prepared:
        if self.said[subject] == "skip":
            raise CannotTest("no build")
        return Prepared(subject=subject)

    def ask(self, prepared: Prepared) -> Answer:
        return Answer(word="bad" if self.said[prepared.subject] == "bad" else "good")

    def release(self, prepared: Prepared) -> None: ...


def history_of(root: Path) -> History:
    environ = {"PATH": "/usr/bin:/bin"}
    return History(repository=root / "repo", tree=root / "tree", log=root / "git.log", environ=environ)


@pytest.mark.parametrize(("cause", "touches"), [(1, True), (64, True), (150, True), (97, False), (219, False)])
def test_of_220_commits_the_right_one_is_found_in_log2_and_three_steps(
    tmp_path: Path, cause: int, touches: bool
) -> None:
    texts = {number: {MPS: str(number)} for number in range(4, 220, 11)} | ({cause: {MPS: "wrong"}} if touches else {})
    commits = write_history(tmp_path / "repo", 220, texts=texts)
    history = history_of(tmp_path)
    found = history.between(commits[0], commits[-1])
    said = {commit: "bad" if number >= cause else "good" for number, commit in enumerate(commits)}
    said[commits[110 if cause < 100 else 60]] = "skip"
    span = Span(
        old=commits[0], new=commits[-1], candidates=found.between, favoured=frozenset(found.favoured), seek="bad"
    )
    state = State(question={}, good=commits[0], bad=commits[-1])

    left = Bisection(state=state, runner=TreeOfCommits(history, said), save=lambda grown: None).search(span)

    assert (left.first_new, left.exact) == (commits[cause], True)
    assert (commits[cause] in found.favoured) == touches
    assert len(found.between) == 218
    assert len(state.probes) <= math.log2(218) + 3


def test_a_good_end_on_a_branch_is_searched_from_where_the_two_part(tmp_path: Path) -> None:
    commits = write_history(tmp_path / "repo", 12, texts={})
    git(tmp_path / "repo", "reset", "-q", "--hard", commits[4])
    git(tmp_path / "repo", "commit", "-q", "--allow-empty", "-m", "release branch")
    release = git(tmp_path / "repo", "rev-parse", "HEAD")

    found = history_of(tmp_path).between(release, commits[9])

    assert found.between == tuple(commits[4:9])
    assert "where the two part" in found.note


def test_a_commit_that_is_not_there_is_said(tmp_path: Path) -> None:
    write_history(tmp_path / "repo", 2, texts={})

    with pytest.raises(UsageError, match="has no commit nowhere"):
        history_of(tmp_path).resolve("nowhere")


def test_what_cannot_be_checked_out_is_gone_round(tmp_path: Path) -> None:
    write_history(tmp_path / "repo", 2, texts={})

    with pytest.raises(CannotTest, match="git: "):
        history_of(tmp_path).check_out("0" * 40)


def listing(repository: Path) -> list[tuple[str, int]]:
    return sorted((str(path), path.lstat().st_mtime_ns) for path in repository.rglob("*") if path.is_file())


@pytest.mark.slow
def test_pip_and_git_find_the_nightly_and_then_the_commit(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MPS_BUILD_WORK", str(tmp_path / "work"))
    monkeypatch.setenv("COUNTER", str(tmp_path / "counter"))
    monkeypatch.chdir(tmp_path)
    cause = 137
    texts = {0: {"state.txt": "good"}, cause: {"state.txt": "bad", MPS: "wrong"}}
    commits = write_history(tmp_path / "repo", 220, texts=texts)
    nightlies = [f"2.7.0.dev202501{day:02d}" for day in range(1, 31)]
    versions = sorted([f"2.{minor}.0" for minor in range(12)] + nightlies, key=Version)
    first_bad = nightlies[20]  # of commit 140; the one before is of 133
    state = {each: "bad" if Version(each) >= Version(first_bad) else "good" for each in versions}
    state |= {nightlies[9]: "skip", nightlies[19]: "flaky"}
    write_index(
        tmp_path / "index",
        versions,
        state=state,
        commits={each: commits[7 * number] for number, each in enumerate(nightlies)},
    )
    (tmp_path / "check.py").write_text(CHECK)
    ask = ("--predicate", f"python {tmp_path}/check.py", "--good", "2.0.0", "--bad", "2.11.0")
    where = ("--index", str(tmp_path / "index"), "--repo", str(tmp_path / "repo"), "--json", str(tmp_path / "a.json"))
    before = listing(tmp_path / "repo")

    status = cli.main("bisect_mps", [*ask, *where, "--markdown", str(tmp_path / "a.md")])

    document = json.loads((tmp_path / "a.json").read_text())
    assert status == 0, document
    by_version, by_commit = document["stages"]
    assert (by_version["first_new"], by_version["exact"]) == (first_bad, True)
    assert by_version["probes"] <= math.log2(by_version["candidates"]) + 3
    assert (by_commit["first_new"], by_commit["exact"]) == (commits[cause], True)
    assert by_commit["suspects"][0]["title"] == f"Change {cause} (#{1000 + cause})"
    assert commits[cause] in (tmp_path / "a.md").read_text()
    assert before == listing(tmp_path / "repo")

    assert cli.main("bisect_mps", [*ask, *where]) == 0
    again = json.loads((tmp_path / "a.json").read_text())
    assert again["probes"] == document["probes"]


def test_our_own_builder_runs_this_tool_whatever_the_commits_tree_holds(tmp_path: Path) -> None:
    tree = tmp_path / "tree"
    (tree / "mps_build").mkdir(parents=True)
    # Python 3.10 cannot be kept from importing what lies in its folder.
    names = ("mps_build/__init__.py", "yaml.py", "rich.py") if sys.version_info >= (3, 11) else ()
    for name in names:
        (tree / name).write_text("raise SystemExit('the tree was imported')\n")
    result = tmp_path / "built.json"

    with pytest.raises(CannotTest, match=r"does not build: .*v9\.9\.9"):
        own_builder("v9.9.9", tree, "f" * 40, result=result, log=tmp_path / "log").build(tree, "f" * 40)

    assert json.loads(result.read_text())["exit_code"] == 2
