"""runner/: set up and taken back on a Mac that fake tools play, in a folder; the hooks and the guard run for real."""

from __future__ import annotations

import os
import plistlib
import re
import shutil
import sys
from pathlib import Path

import pytest
from mps_build.common.process import Captured, Command, capture
from mps_build.publish.fleet.trust import TRUSTED_EVENTS

RUNNER = Path(__file__).parents[3] / "runner"
SCRIPTS = sorted(RUNNER.rglob("*.sh"))
_FAKES = {
    "uname": "echo Darwin",
    "id": "echo 0",
    "stat": "echo builder",
    "pmset": 'echo "pmset $*" >> "$CALLS"',
    "mdutil": 'echo "mdutil $*" >> "$CALLS"; exit 1',
    "plutil": 'echo "plutil $*" >> "$CALLS"',
    "launchctl": 'echo "launchctl $*" >> "$CALLS"; [ "$1" != bootout ]',
    "chown": 'echo "chown $*" >> "$CALLS"',
}


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


class Mac:
    """A folder that stands for a Mac: tools that note how they are called, and a registered runner."""

    bash: tuple[str, ...] = ("bash",)

    def __init__(self, folder: Path) -> None:
        self.root, self.tools, self.calls = folder / "root", folder / "bin", folder / "calls"
        self.runner = folder / "actions runner & co"
        for place in (self.root, self.tools, self.runner):
            place.mkdir()
        self.calls.touch()
        for name, body in _FAKES.items():
            self.tool(name, body)
        self.tool("df", 'echo "Filesystem 1024-blocks Used Available"; echo "/dev/disk 9 9 ${FREE_KB:-99999999} 1% /x"')
        (self.runner / "run.sh").write_text("#!/bin/sh\n", encoding="utf-8")
        (self.runner / "run.sh").chmod(0o755)
        (self.runner / ".runner").write_text("{}", encoding="utf-8")
        (self.runner / ".env").write_text("LANG=C\n", encoding="utf-8")

    def tool(self, name: str, body: str) -> None:
        path = self.tools / name
        path.write_text(f"#!/bin/sh\n{body}\n", encoding="utf-8")
        path.chmod(0o755)

    def run(self, script: str | Path, *arguments: str, **environ: str) -> Captured:
        whole = {
            "PATH": f"{self.tools}:{os.environ['PATH']}",
            "CALLS": str(self.calls),
            "MPS_BUILD_SETUP_ROOT": str(self.root),
            # macOS has bash 3.2; the bash that is here behaves as that one where its behaviour changed.
            "BASH_COMPAT": "3.2",
        }
        return capture(Command(argv=(*self.bash, str(RUNNER / script), *arguments), environ=whole | environ))

    def install(self) -> Captured:
        return self.run("setup.sh", "install", "--url", "https://github.com/owner/wheels", "--runner", str(self.runner))

    def files(self) -> dict[str, bytes]:
        folders = (self.root, self.runner)
        return {str(path): path.read_bytes() for each in folders for path in each.rglob("*") if path.is_file()}


@pytest.fixture
def mac(tmp_path: Path) -> Mac:
    return Mac(tmp_path)


def test_install_sets_up_power_folders_hooks_and_services(mac: Mac) -> None:
    found = mac.install()

    assert found.ok, found.stderr
    calls = mac.calls.read_text(encoding="utf-8")
    assert "pmset -a sleep 0" in calls
    assert calls.count("launchctl bootstrap system") == 2
    assert (mac.root / "opt/mps-build/.metadata_never_index").is_file()
    environment = (mac.runner / ".env").read_text(encoding="utf-8").splitlines()
    assert environment[0] == "LANG=C"
    assert "ACTIONS_RUNNER_HOOK_JOB_STARTED=/usr/local/libexec/mps-build/job-started.sh" in environment
    assert "MPS_BUILD_REPOSITORIES=owner/wheels" in environment
    hooks = mac.root / "usr/local/libexec/mps-build"
    assert {path.name for path in hooks.iterdir()} == {
        "repositories",
        *(p.name for p in SCRIPTS if p.name != "setup.sh"),
    }
    assert (hooks / "repositories").read_text(encoding="utf-8") == "owner/wheels\n"


def test_the_services_are_property_lists_that_name_what_was_given(mac: Mac) -> None:
    mac.install()

    daemons = mac.root / "Library/LaunchDaemons"
    runner = plistlib.loads((daemons / "io.github.mps-build.runner.plist").read_bytes())
    guard = plistlib.loads((daemons / "io.github.mps-build.disk-guard.plist").read_bytes())
    assert runner["Label"] == "io.github.mps-build.runner"
    assert runner["UserName"] == "builder"
    assert runner["ProgramArguments"][-1] == f"{mac.runner}/run.sh"
    assert runner["KeepAlive"] is True
    assert guard["ProgramArguments"][1:] == ["/usr/local/libexec/mps-build/disk-guard.sh", "/opt/mps-build"]
    assert "@" not in str(runner) + str(guard)


def test_a_service_of_launchd_finds_homebrews_python_and_ccache(mac: Mac) -> None:
    mac.tool("python3", "exit 1  # as Apple's 3.9 answers")

    assert "no python3 of 3.10 or newer" in mac.install().stderr
    mac.tool("python3", f'exec "{sys.executable}" "$@"')
    assert mac.install().ok

    for service in ("runner", "disk-guard"):
        plist = mac.root / f"Library/LaunchDaemons/io.github.mps-build.{service}.plist"
        path = plistlib.loads(plist.read_bytes())["EnvironmentVariables"]["PATH"].split(":")
        assert path[0] == str(mac.tools), "the Python that was chosen comes first"
        assert path[1:] == ["/opt/homebrew/bin", "/usr/local/bin", "/usr/bin", "/bin", "/usr/sbin", "/sbin"]


def test_a_second_install_changes_nothing(mac: Mac) -> None:
    mac.install()
    first = mac.files()

    assert mac.install().ok
    assert mac.files() == first


def test_uninstall_takes_back_what_install_wrote(mac: Mac) -> None:
    before = mac.files()
    mac.install()

    assert mac.run("setup.sh", "uninstall", "--runner", str(mac.runner)).ok

    left = {path: content for path, content in mac.files().items() if "/opt/mps-build/" not in path}
    assert left == before


@pytest.mark.parametrize("action", ["install", "uninstall"])
def test_a_dry_run_prints_every_change_and_makes_none(mac: Mac, action: str) -> None:
    mac.tool("uname", "echo Linux")
    before = mac.files()

    found = mac.run("setup.sh", "--dry-run", action)

    assert found.ok, found.stderr
    assert mac.files() == before
    assert mac.calls.read_text(encoding="utf-8") == ""
    assert "+ launchctl bootout system/io.github.mps-build.runner" in found.stdout


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("install", "--runner", "/nowhere"), "--url is missing"),
        (("install", "--url", "https://github.com/owner"), "--runner is missing"),
        (("install", "--url", "https://github.com/owner", "--runner", "/nowhere"), "names no repository"),
        (("install", "--url", "https://github.com/o/n", "--runner", "/nowhere"), "holds no runner"),
        (("install", "--url", "https://evil.example/o/n", "--runner", "/nowhere"), "is not a repository on github.com"),
        (("install", "--work", "/opt/a b"), "plain letters"),
        (("install", "--work", "/opt/../etc"), "plain letters"),
        (("install", "--work"), "needs a value"),
        (("instal",), "what is instal?"),
    ],
)
def test_what_cannot_be_is_refused_before_anything_changes(mac: Mac, arguments: tuple[str, ...], said: str) -> None:
    before = mac.files()

    found = mac.run("setup.sh", *arguments)

    assert found.exit == 2
    assert said in found.stderr
    assert mac.files() == before


@pytest.mark.parametrize(
    "work",
    [
        "/opt/..",
        "/opt/../..",
        "//",
        "/",
        "/opt",
        "/opt/",
        "/opt//",
        "/opt/.",
        "/Users",
        "/Users/jane",
        "/etc/x",
        "/opt/./x",
        "/opt/x/../../etc",
        "/usr/local/x",
        "/Users/../etc/x",
        "/optional/x",
        "relative/x",
        "/opt/x//y",
        "",
    ],
)
def test_a_work_folder_outside_opt_and_users_is_refused(mac: Mac, work: str) -> None:
    before = mac.files()

    found = mac.run(
        "setup.sh", "install", "--url", "https://github.com/o/n", "--runner", str(mac.runner), "--work", work
    )

    assert found.exit == 2, found.stdout
    assert mac.files() == before
    assert "chown" not in mac.calls.read_text(encoding="utf-8")


@pytest.mark.parametrize("work", ["/opt/mps", "/opt/mps/", "/Users/runner/work", "/opt/a.b-c_d/e"])
def test_a_work_folder_below_opt_or_users_is_taken(mac: Mac, work: str) -> None:
    found = mac.run(
        "setup.sh", "install", "--url", "https://github.com/o/n", "--runner", str(mac.runner), "--work", work
    )

    assert found.ok, found.stderr
    assert (mac.root / work.strip("/") / "work").is_dir()


def test_nothing_is_given_away_by_recursion(mac: Mac, tmp_path: Path) -> None:
    work = mac.root / "opt/mps-build"
    work.mkdir(parents=True)
    (work / "hard").hardlink_to(mac.runner / "run.sh")

    assert mac.install().ok

    calls = [line for line in mac.calls.read_text(encoding="utf-8").splitlines() if line.startswith("chown")]
    assert f"chown -h builder {work}" in calls
    assert not [line for line in calls if "-R" in line]
    assert all(line.endswith(str(work)) or "/.part." in line for line in calls), calls


@pytest.mark.parametrize("action", ["install", "uninstall"])
@pytest.mark.parametrize("name", [".env", ".env.part"])
@pytest.mark.parametrize("kind", ["symlink", "hardlink", "folder"])
def test_a_link_of_the_runners_account_leads_root_nowhere(
    mac: Mac, tmp_path: Path, kind: str, name: str, action: str
) -> None:
    secret = tmp_path / "master.passwd"
    secret.write_text("root:secret\n", encoding="utf-8")
    place = mac.runner / name
    place.unlink(missing_ok=True)
    if kind == "symlink":
        place.symlink_to(secret)
    elif kind == "hardlink":
        place.hardlink_to(secret)
    else:
        place.mkdir()

    given = ("--url", "https://github.com/owner/wheels") if action == "install" else ()
    found = mac.run("setup.sh", action, *given, "--runner", str(mac.runner))

    assert secret.read_text(encoding="utf-8") == "root:secret\n"
    assert "secret" not in found.stdout
    others = [path for path in mac.runner.rglob("*") if path.is_file() and not path.samefile(secret)]
    assert not [path for path in others if "secret" in path.read_text(encoding="utf-8")]
    assert not list(mac.root.rglob(".part.*"))
    if name == ".env" and (kind != "folder" or action == "install"):
        assert found.exit == 2, found.stdout


@pytest.mark.parametrize("place", ["opt", "opt/mps-build", "usr/local", "usr/local/libexec/mps-build"])
def test_a_link_among_the_folders_of_root_is_refused(mac: Mac, tmp_path: Path, place: str) -> None:
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    (mac.root / place).parent.mkdir(parents=True, exist_ok=True)
    (mac.root / place).symlink_to(elsewhere)

    assert mac.install().exit == 2
    assert list(elsewhere.iterdir()) == []


def test_a_linked_runner_folder_is_refused(mac: Mac, tmp_path: Path) -> None:
    link = tmp_path / "link"
    link.symlink_to(mac.runner)
    found = mac.run("setup.sh", "install", "--url", "https://github.com/o/n", "--runner", str(link))
    assert found.exit == 2
    assert "is a link" in found.stderr


def test_another_system_and_a_plain_user_are_refused(mac: Mac) -> None:
    mac.tool("id", "echo 501")
    assert "needs root" in mac.install().stderr
    mac.tool("uname", "echo Linux")
    assert "this is not a Mac" in mac.install().stderr


def _put_hooks(mac: Mac) -> Path:
    """Put the hooks where install puts them (a test above holds that), without the rest of it."""
    folder = mac.root / "usr/local/libexec/mps-build"
    folder.mkdir(parents=True)
    (mac.root / "opt/mps-build").mkdir(parents=True)
    for script in SCRIPTS:
        shutil.copy(script, folder)
    (folder / "repositories").write_text("owner/wheels\n", encoding="utf-8")
    return folder


def _hook(mac: Mac, **environ: str) -> Captured:
    folder = _put_hooks(mac)
    given = {
        "GITHUB_EVENT_NAME": "schedule",
        "GITHUB_REPOSITORY": "owner/wheels",
        "GITHUB_REF": "refs/heads/main",
        "MPS_BUILD_WORK": str(mac.root / "opt/mps-build/work"),
    }
    return mac.run(folder / "job-started.sh", **given | environ)


def test_the_hook_lets_the_fleets_own_jobs_in(mac: Mac) -> None:
    assert _hook(mac).ok


@pytest.mark.parametrize(
    "environ",
    [
        {"GITHUB_EVENT_NAME": "pull_request"},
        {"GITHUB_EVENT_NAME": "pull_request_target"},
        {"GITHUB_EVENT_NAME": "issue_comment"},
        {"GITHUB_EVENT_NAME": ""},
        {"GITHUB_REPOSITORY": "stranger/wheels"},
        {"GITHUB_REPOSITORY": "owner/wheels2"},
        {"GITHUB_REPOSITORY": "owner.wheels"},
        {"GITHUB_REPOSITORY": ""},
        {"GITHUB_REF": "refs/pull/7/merge"},
        {"FREE_KB": "1000000"},
    ],
)
def test_the_hook_refuses_on_the_host(mac: Mac, environ: dict[str, str]) -> None:
    found = _hook(mac, **environ)

    assert found.exit == 1
    assert "this Mac refuses the job" in found.stdout


def test_a_hook_without_its_list_refuses_all(mac: Mac) -> None:
    folder = _put_hooks(mac)
    (folder / "repositories").unlink()

    environ = {"GITHUB_EVENT_NAME": "push", "GITHUB_REPOSITORY": "owner/wheels", "GITHUB_REF": "refs/heads/main"}
    found = mac.run(folder / "job-started.sh", **environ)

    assert found.exit == 1
    assert "is missing" in found.stdout


def test_the_hook_and_the_workflow_step_trust_the_same_events() -> None:
    events = " | ".join(TRUSTED_EVENTS)

    assert f"  {events}) ;;" in (RUNNER / "hooks" / "job-started.sh").read_text(encoding="utf-8")
    for name in ("build-wheel", "verify-mps"):
        text = (RUNNER.parent / ".github" / "workflows" / f"{name}.yml").read_text(encoding="utf-8")
        assert f"            {events}) ;;" in text


def test_the_hook_after_a_job_empties_the_runners_temporary_folder_only(mac: Mac, tmp_path: Path) -> None:
    script = _put_hooks(mac) / "job-completed.sh"
    temporary, other = tmp_path / "_work" / "_temp", tmp_path / "precious"
    for folder in (temporary, other):
        folder.mkdir(parents=True)
        (folder / "file").touch()

    assert mac.run(script, RUNNER_TEMP=str(temporary), MPS_BUILD_WORK=str(mac.root / "opt/mps-build/work")).ok
    assert mac.run(script, RUNNER_TEMP=str(other)).ok

    assert list(temporary.iterdir()) == []
    assert (other / "file").is_file()


@pytest.mark.parametrize(("kilobytes", "status"), [("39062500", 0), ("39062499", 19), ("", 2), ("0", 19), ("many", 2)])
def test_the_guard_wants_forty_gigabytes(mac: Mac, tmp_path: Path, kilobytes: str, status: int) -> None:
    mac.tool("df", f'echo Header; echo "/dev/disk 9 9 {kilobytes or "-"} 1% /x"')

    assert mac.run("disk-guard.sh", str(tmp_path)).exit == status


def test_the_guard_frees_by_our_own_session_and_nothing_by_itself(mac: Mac, tmp_path: Path) -> None:
    mac.tool("nox", 'echo "nox $* in $MPS_BUILD_WORK" >> "$CALLS"')
    (tmp_path / "file").touch()

    found = mac.run("disk-guard.sh", "--free", str(tmp_path), FREE_KB="1000000")

    assert found.exit == 19
    assert mac.calls.read_text(encoding="utf-8") == f"nox -s clean -- work --older-than 7 in {tmp_path}/work\n"
    assert (tmp_path / "file").is_file()


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


@pytest.mark.skipif(shutil.which("shellcheck") is None, reason="no shellcheck here; `nox -s workflows` runs it")
def test_the_scripts_pass_shellcheck() -> None:
    found = capture(Command(argv=("shellcheck", *map(str, SCRIPTS))), timeout_seconds=60)

    assert found.ok, found.stdout
