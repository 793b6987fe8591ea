"""runner/: its scripts keep to bash 3.2, the shell that macOS has."""

from __future__ import annotations

import os
import re
import shutil
from pathlib import Path

import pytest
from fleet_hosts import SCRIPTS, Mac
from mps_build.common.process import Command, capture

# What came after 3.2 (bash's NEWS of 4.0 to 5.3), by what it looks like.
NEWER_THAN_3_2 = {
    "associative array": r"\b(declare|local|typeset) -\w*A",
    "name reference": r"\b(declare|local|typeset) -\w*n\b",
    "global declare": r"\bdeclare -\w*g",
    "mapfile": r"\b(mapfile|readarray)\b",
    "indirect": r"\$\{!",
    "case change": r"\$\{\w+(\[[^]]*\])?(\^\^?|,,?)",
    "transformation": r"\$\{\w+(\[[^]]*\])?@[A-Za-z]\}",
    "negative index": r"\$\{\w+\[-\d+\]\}|\$\{\w+:[^}]*:\s*-\d",
    "pipe both": r"\|&",
    "append both": r"&>>",
    "fall through": r";;?&",
    "coproc": r"\bcoproc\b",
    "wait for one": r"\bwait -n\b",
    "test of a variable": r"\[\[? -[vR] ",
    "globstar": r"\bshopt -s (globstar|lastpipe|inherit_errexit)\b",
    "time in printf": r"%\([^)]*\)T",
    "Unicode escape": r"\$'[^']*\\u",
    "step of a sequence": r"\{\d+\.\.\d+\.\.\d+\}|\{0\d+\.\.\d+\}",
    "variables of 4 and 5": r"\$\{?(EPOCHSECONDS|EPOCHREALTIME|SRANDOM|BASHPID|BASH_ARGV0)\b",
    "fraction of a second": r"\bread .*-t ?0?\.\d",
    "descriptor in a variable": r"\{\w+\}[<>]",
}


NEWER_EXAMPLES = {
    "associative array": "declare -A x",
    "name reference": "local -n y=x",
    "global declare": "declare -g x",
    "mapfile": "readarray x < y",
    "indirect": "${!x}",
    "case change": "${x^^}",
    "transformation": "${x@Q}",
    "negative index": "${x[-1]}",
    "pipe both": "a |& b",
    "append both": "a &>> b",
    "fall through": "a) b ;;&",
    "coproc": "coproc a",
    "wait for one": "wait -n",
    "test of a variable": "[[ -v x ]]",
    "globstar": "shopt -s globstar",
    "time in printf": "printf '%(%s)T'",
    "Unicode escape": "$'\\u00e9'",
    "step of a sequence": "{1..9..2}",
    "variables of 4 and 5": "$EPOCHSECONDS",
    "fraction of a second": "read -t 0.5 x",
    "descriptor in a variable": "exec {fd}> x",
}


@pytest.mark.parametrize("script", SCRIPTS, ids=lambda path: path.name)
def test_the_scripts_keep_to_the_shell_that_macos_has(script: Path) -> None:
    text = script.read_text(encoding="utf-8")

    assert text.startswith("#!/bin/bash\n")
    assert os.access(script, os.X_OK)
    assert capture(Command(argv=("bash", "-n", str(script)))).ok
    # macOS has bash 3.2: none of these are in it.
    code = re.sub(r"(?m)^\s*#.*$", "", text)
    found = {name for name, pattern in NEWER_THAN_3_2.items() if re.search(pattern, code)}
    assert found == set()


@pytest.mark.parametrize("name", sorted(NEWER_THAN_3_2))
def test_each_construct_that_bash_3_2_lacks_would_be_noticed(name: str) -> None:
    assert re.search(NEWER_THAN_3_2[name], NEWER_EXAMPLES[name]), name


def test_the_scripts_work_in_posix_mode_too(mac: Mac, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Mac, "bash", ("bash", "--posix"))

    assert mac.install().ok
    assert mac.run("setup.sh", "--dry-run").ok
    job = {"GITHUB_EVENT_NAME": "push", "GITHUB_REPOSITORY": "owner/wheels", "GITHUB_REF": "refs/heads/main"}
    work = str(mac.root / "opt/mps-build/work")
    assert mac.run(mac.root / "usr/local/libexec/mps-build/job-started.sh", **job, MPS_BUILD_WORK=work).ok
    assert mac.run("setup.sh", "uninstall", "--runner", str(mac.runner)).ok


@pytest.mark.skipif(shutil.which("shellcheck") is None, reason="no shellcheck here; `nox -s dev -- workflows` runs it")
def test_the_scripts_pass_shellcheck() -> None:
    found = capture(Command(argv=("shellcheck", *map(str, SCRIPTS))), timeout_seconds=60)

    assert found.ok, found.stdout
