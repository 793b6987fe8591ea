"""`shell` without a command: the user's shell, in the build's environment and in no other."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest
from mps_build.commands.shell import bare_shell
from processes import LONGEST_SECONDS

SHELLS = [name for name in ("bash", "zsh", "dash", "sh", "fish", "tcsh", "ksh") if shutil.which(name)]
LINE = "export PATH=/opt/homebrew/bin:$PATH CPATH=/opt/homebrew/include\n"
STARTS = (".bashrc", ".bash_profile", ".profile", ".zshrc", ".zshenv", ".zprofile", ".zlogin", ".kshrc", ".shinit")


@pytest.fixture(name="home")
def _home(tmp_path: Path) -> Path:
    """A home where Homebrew has put itself first, in every start-up file there is."""
    home = tmp_path / "home"
    (home / ".config/fish").mkdir(parents=True)
    for name in STARTS:
        (home / name).write_text(LINE, encoding="utf-8")
    (home / ".config/fish/config.fish").write_text("set -gx PATH /opt/homebrew/bin $PATH\n", encoding="utf-8")
    for name in (".cshrc", ".tcshrc", ".login"):
        (home / name).write_text("setenv PATH /opt/homebrew/bin:$PATH\n", encoding="utf-8")
    return home


@pytest.mark.parametrize("name", SHELLS)
def test_a_start_up_file_changes_nothing(name: str, home: Path, tmp_path: Path) -> None:
    program = shutil.which(name)
    assert program
    started = bare_shell(program, folder=tmp_path / "work" / "shell")
    given = {"PATH": "/venv/bin:/usr/bin:/bin", "HOME": str(home), "TERM": "dumb", "ENV": str(home / ".shinit")}

    ran = subprocess.run(
        started.argv,
        env={**given, **started.variables},
        input="echo PATH=$PATH CPATH=$CPATH.\nexit 7\n"
        if name not in ("tcsh", "fish")
        else "echo PATH=$PATH\nexit 7\n",
        capture_output=True,
        text=True,
        timeout=LONGEST_SECONDS,
        check=False,
    )

    assert ran.returncode == 7, ran.stderr
    assert "/opt/homebrew" not in ran.stdout
    assert "/venv/bin" in ran.stdout


def test_zsh_gets_a_folder_of_its_own_for_start_up_files(tmp_path: Path) -> None:
    started = bare_shell("/bin/zsh", folder=tmp_path / "shell")

    assert started.argv == ("/bin/zsh", "-d", "-i")
    assert started.variables == {"ZDOTDIR": str(tmp_path / "shell")}
    assert {path.name for path in (tmp_path / "shell").iterdir()} == {".zshrc"}
    assert "PATH" not in (tmp_path / "shell" / ".zshrc").read_text(encoding="utf-8")


@pytest.mark.parametrize(
    "shell", ["/bin/zsh", "/opt/homebrew/bin/fish", "/bin/tcsh", "/bin/ksh", "/usr/local/bin/xonsh"]
)
def test_every_shell_starts_without_a_variable_of_the_build_being_touched(shell: str, tmp_path: Path) -> None:
    started = bare_shell(shell, folder=tmp_path / "shell")

    assert started.argv[0] == shell
    assert started.variables.keys() <= {"ZDOTDIR", "PS1", "ENV"}
    assert Path(started.argv[0]).is_absolute()
