"""runner/setup.sh: set up and taken back on a Mac that fake tools play, in a folder."""

from __future__ import annotations

import plistlib
import sys
from pathlib import Path

import pytest
from fleet_hosts import SCRIPTS, Mac


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
        (("install", "--work", "/opt/a b"), "plain characters"),
        (("install", "--work", "/opt/../etc"), "plain characters"),
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
