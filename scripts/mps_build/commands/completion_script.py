"""Verbs and options -> a completion script for bash, zsh or fish; it runs nothing of ours while a person types.

The script holds every verb and every option as they are now: write it anew after an update.
"""

from __future__ import annotations

import argparse
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

SHELLS = ("bash", "zsh", "fish")
_TAKES_A_PATH = re.compile(r"FILE|DIR|PATH|WHEEL|LOG|RECORD|LEFT|RIGHT|TREE|SOURCE|URL")


@dataclass(frozen=True, slots=True, kw_only=True)
class Option:
    """One option, or one argument that has a place and no name (`names` is empty).

    Attributes:
        values: what it may be, where that is a list; else empty.
        paths: it may be a file or a folder.
    """

    names: tuple[str, ...]
    text: str
    takes_value: bool
    metavar: str
    values: tuple[str, ...]
    paths: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Verb:
    """A verb, what it is for, and all that may stand behind it."""

    name: str
    summary: str
    options: tuple[Option, ...]

    @property
    def named(self) -> tuple[Option, ...]:
        return tuple(option for option in self.options if option.names)

    @property
    def placed(self) -> tuple[Option, ...]:
        return tuple(option for option in self.options if not option.names)


def verb_of(name: str, summary: str, parser: argparse.ArgumentParser, *, known: Mapping[str, Sequence[str]]) -> Verb:
    """Return a verb as its parser tells it.

    Args:
        known: what an argument of that metavar may be, beside its own choices: RECIPE -> the recipes' names.
    """
    return Verb(name=name, summary=summary, options=tuple(_options(parser, known)))


def script(shell: str, verbs: Sequence[Verb]) -> str:
    """Return the completion script of one shell."""
    return {"bash": _bash, "zsh": _zsh, "fish": _fish}[shell](verbs)


def _options(parser: argparse.ArgumentParser, known: Mapping[str, Sequence[str]]) -> Iterator[Option]:
    for action in parser._actions:  # argparse tells its actions in no other way; shtab and argcomplete read them too
        metavar = action.metavar if isinstance(action.metavar, str) else action.dest.upper()
        values = tuple(map(str, action.choices)) if action.choices else tuple(known.get(metavar, ()))
        yield Option(
            names=tuple(action.option_strings),
            text=" ".join((action.help or "").replace("%%", "%").split()),
            takes_value=action.nargs != 0,
            metavar=metavar,
            values=values,
            paths=bool(_TAKES_A_PATH.search(metavar)) or metavar == "RECIPE",
        )


def _bash(verbs: Sequence[Verb]) -> str:
    branches = []
    for verb in verbs:
        lines = []
        for option in verb.named:
            if option.takes_value:
                lines.append(f"        {'|'.join(option.names)}) {_bash_words(option)} ;;")
        words = [name for option in verb.named for name in option.names]
        placed = sorted({value for option in verb.placed for value in option.values})
        lines.append('        *) case "$current" in')
        lines.append(f'          -*) COMPREPLY=($(compgen -W "{" ".join(words)}" -- "$current")) ;;')
        lines.append(f'          *) COMPREPLY=($(compgen -W "{" ".join(placed)}" -- "$current")) ;;')
        lines.append("        esac ;;")
        branches.append(f'    {verb.name}) case "$previous" in\n' + "\n".join(lines) + "\n      esac ;;")
    names = " ".join([*(verb.name for verb in verbs), "--help", "--version"])
    return _BASH.format(names=names, branches="\n".join(branches))


def _bash_words(option: Option) -> str:
    return f'COMPREPLY=($(compgen -W "{" ".join(option.values)}" -- "$current"))' if option.values else "COMPREPLY=()"


_BASH = """\
# mps-build: made by `mps-build completion bash`; source it from ~/.bashrc
_mps_build() {{
  local current=${{COMP_WORDS[COMP_CWORD]}} previous=${{COMP_WORDS[COMP_CWORD-1]}}
  COMPREPLY=()
  if [ "$COMP_CWORD" -eq 1 ]; then
    COMPREPLY=($(compgen -W "{names}" -- "$current"))
    return
  fi
  case "${{COMP_WORDS[1]}}" in
{branches}
  esac
}}
complete -o bashdefault -o default -F _mps_build mps-build
"""


def _zsh(verbs: Sequence[Verb]) -> str:
    described = "\n".join(f"    {_quoted(f'{verb.name}:{verb.summary}')}" for verb in verbs)
    branches = []
    for verb in verbs:
        specs = [_zsh_named(option, name) for option in verb.named for name in option.names]
        specs += [f"*:{option.metavar}:{_zsh_action(option)}" for option in verb.placed[:1]]
        lines = " \\\n        ".join(_quoted(spec) for spec in specs)
        branches.append(f"    {verb.name})\n      _arguments \\\n        {lines} ;;")
    return _ZSH.format(described=described, branches="\n".join(branches))


def _zsh_named(option: Option, name: str) -> str:
    text = re.sub(r"([\[\]:\\])", r"\\\1", option.text)
    value = f":{option.metavar}:{_zsh_action(option)}" if option.takes_value else ""
    return f"{name}[{text}]{value}"


def _zsh_action(option: Option) -> str:
    if option.values and option.paths:
        return f" _mps_build_either {' '.join(option.values)}"  # the blank first: nothing is put between the words
    if option.values:
        return f"({' '.join(option.values)})"
    return "_files" if option.paths else " "


_ZSH = """\
#compdef mps-build
# made by `mps-build completion zsh`; put it as _mps-build into a folder of $fpath, or source it after compinit
_mps_build_either() {{
  compadd -- "$@"
  _files
}}
_mps_build() {{
  local -a verbs
  verbs=(
{described}
  )
  if (( CURRENT == 2 )); then
    _describe -t verbs 'verb' verbs
    return
  fi
  local verb=$words[2]
  shift words
  (( CURRENT-- ))
  case $verb in
{branches}
  esac
}}
if [ "$funcstack[1]" = "_mps-build" ]; then
  _mps_build "$@"
else
  compdef _mps_build mps-build
fi
"""


def _fish(verbs: Sequence[Verb]) -> str:
    lines = ["# mps-build: made by `mps-build completion fish`; put it into ~/.config/fish/completions/mps-build.fish"]
    lines += ["complete -c mps-build -f", "complete -c mps-build -n __fish_use_subcommand -l version -s V"]
    for verb in verbs:
        lines.append(f"complete -c mps-build -n __fish_use_subcommand -a {verb.name} -d {_quoted(verb.summary)}")
        seen = f"-n '__fish_seen_subcommand_from {verb.name}'"
        for option in verb.named:
            names = " ".join(
                f"-l {name[2:]}" if name.startswith("--") else f"-s {name[1:]}"
                for name in option.names
                if len(name.lstrip("-")) > 1 or not name.startswith("--")
            )
            lines.append(f"complete -c mps-build {seen} {names} {_fish_value(option)}-d {_quoted(option.text)}")
        for option in verb.placed:
            words = f"-a {_quoted(' '.join(option.values))} " if option.values else ""
            lines.append(f"complete -c mps-build {seen} {'-F ' if option.paths else '-f '}{words}".rstrip())
    return "\n".join(lines) + "\n"


def _fish_value(option: Option) -> str:
    if not option.takes_value:
        return ""
    if option.values:
        return f"-x -a {_quoted(' '.join(option.values))} "
    return "-r -F " if option.paths else "-x "


def _quoted(text: str) -> str:
    """Return a text in single quotes, as bash, zsh and fish all read it."""
    return "'" + text.replace("'", "’") + "'"
