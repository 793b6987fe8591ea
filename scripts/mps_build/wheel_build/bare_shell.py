"""A user's own shell without its start-up files, which would change the environment it is given.

Homebrew's and conda's lines in ~/.zshrc put their folders in front of PATH; macOS' /etc/zprofile sorts PATH anew
(path_helper), for login shells alone.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path


@dataclass(frozen=True, slots=True, kw_only=True)
class BareShell:
    """How a shell is started: its words, and the variables that keep its start-up files away."""

    argv: tuple[str, ...]
    variables: Mapping[str, str] = field(default_factory=dict)


_PROMPT = "(mps-build) "


def bare_shell(program: str, *, folder: Path) -> BareShell:
    """Return how `program` starts as a shell in the environment it inherits.

    Args:
        folder: for zsh, which has no option for a prompt of ours: a start-up folder that holds nothing but it.
    """
    name = Path(program).name
    if name == "zsh":
        # -d: nothing of /etc but zshenv; ZDOTDIR: our file in the place of ~/.zshenv and ~/.zshrc.
        folder.mkdir(parents=True, exist_ok=True)
        (folder / ".zshrc").write_text(f"PROMPT='{_PROMPT}%1~ %# '\n", encoding="utf-8")
        return BareShell(argv=(program, "-d", "-i"), variables={"ZDOTDIR": str(folder)})
    if name == "bash":
        return BareShell(argv=(program, "--noprofile", "--norc", "-i"), variables={"PS1": f"{_PROMPT}\\W \\$ "})
    if name == "fish":
        return BareShell(argv=(program, "--no-config", "-i"))
    if name in ("tcsh", "csh"):
        return BareShell(argv=(program, "-f"))
    # POSIX: an interactive sh, dash or ksh reads the file that ENV names.
    return BareShell(argv=(program, "-i"), variables={"ENV": "", "PS1": f"{_PROMPT}$ "})
