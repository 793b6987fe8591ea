"""What `--help` shows of a command: the options most people need, the names of the others by purpose, exit codes.

`--help-all` explains every option. A command may state `FIRST`, at most five options, and `EXITS`, the exit codes that
are its own beside 0, 1 and 2.
"""

from __future__ import annotations

import argparse
import textwrap
from collections.abc import Iterable, Iterator, Sequence

from mps_build.common.errors import MpsBuildError

# By purpose, in this order; an option has the same purpose in every command.
PURPOSES = {
    "what is run": """--all --answers --case-timeout --cases --causes --check --fresh --full --inject --kernel --kernels
        --keys --known --large --layer --only --op --predicate --quick --real-weights --releases --resume --runs
        --script --seed --show --suite --time --timeout --upgrade --run""",
    "which torch, which Python": """--accelerate --against --bad --good --index --interpreter --nightly --python --torch
        --transformers --venv --version-label --with""",
    "which source": """--base --builder --commit --companions --darwin --draw --mirror --patch --recipe --ref --repo
        --repository --set --source --target --tree --wheel""",
    "which device": """--allow-virtual --as-mac --device --exit --host --macos --runner --signal --simulated
        --testers --virtual --xcode""",
    "how it is done": """--cache --cache-key --days --dry-run --editable --jobs --keep --memory-limit --offline
        --older-than --profile --prune --reason --rebuild --shared-cache --timing --today --trust --yank""",
    "what is accepted": """--accept --allow-jit-shaders --allow-none --bundle --fail-on --known-issues --receipt
        --signer-repository --trusted-root --without-attestation --without-metal4 --workflow""",
    "what is written": """--annotations --base-url --beside --build --default-python --html --into --issue --json
        --junit --log-size --markdown --name --output --per-recipe --png --record --results --sarif --svg --total-size
        --wheelhouse""",
}
# Options that no page and no command's own words speak of: `--help-all` alone shows them.
RARE = frozenset(
    {
        *("--accelerate", "--commit", "--days", "--log-size", "--patch", "--receipt", "--signer-repository", "--suite"),
        *("--today", "--total-size", "--version-label", "--virtual", "--wheelhouse", "--workflow"),
    }
)
FEW = 5


def short_help(parser: argparse.ArgumentParser, *, first: Sequence[str], exits: Iterable[int], examples: str) -> str:
    """Return the text of `--help`.

    Args:
        first: the options to explain; where none is named, the first five.
        exits: exit codes beside 0, 1 and 2.
        examples: the last part.
    """
    options = _options(parser)
    named = {name: action for action in options for name in action.option_strings}
    shown = [named[name] for name in first] or [action for action in options if action.dest != "json"][:FEW]
    formatter = parser._get_formatter()
    formatter.add_text(f"usage: {_usage(parser)}\n\n{(parser.description or '').strip()}")
    for title, actions in (("arguments", _positionals(parser)), ("options", shown)):
        formatter.start_section(title)
        formatter.add_arguments(actions)
        formatter.end_section()
    names = {action.option_strings[-1] for action in options if action not in shown} - RARE
    rows = [(purpose, [name for name in ours.split() if name in names]) for purpose, ours in PURPOSES.items()]
    lines = [_row(f"  {purpose}:", ", ".join(found)) for purpose, found in rows if found]
    if lines:
        formatter.add_text("\n".join(["more options, which --help-all explains:", *lines]))
    formatter.add_text(examples)
    formatter.add_text("\n".join(["exit codes:", *_exits(exits)]))
    return formatter.format_help()


def whole_help(parser: argparse.ArgumentParser, *, exits: Iterable[int], examples: str) -> str:
    """Return the text of `--help-all`: every option, by purpose."""
    formatter = parser._get_formatter()
    formatter.add_text(f"usage: {_usage(parser)}\n\n{(parser.description or '').strip()}")
    options = _options(parser)
    parts = [("arguments", _positionals(parser))]
    for purpose, ours in PURPOSES.items():
        parts.append((purpose, [action for action in options if action.option_strings[-1] in ours.split()]))
    for title, actions in parts:
        formatter.start_section(title)
        formatter.add_arguments(actions)
        formatter.end_section()
    formatter.add_text(examples)
    formatter.add_text("\n".join(["exit codes:", *_exits(exits)]))
    return formatter.format_help()


def codes() -> dict[int, str]:
    """Return what each exit code says, of the error classes: its first line."""
    found = {0: "done, accepted, verified or rehearsed", 1: "a bug of mps-build; it shows a traceback"}
    for error in sorted(_errors(MpsBuildError), key=lambda error: error.exit_code):
        found.setdefault(error.exit_code, f"{error.cause}: {(error.__doc__ or '').strip().splitlines()[0]}")
    return found


def _errors(base: type[MpsBuildError]) -> Iterator[type[MpsBuildError]]:
    for error in base.__subclasses__():
        if "exit_code" in vars(error):
            yield error
        yield from _errors(error)


def _exits(own: Iterable[int]) -> list[str]:
    said = codes()
    return [_row(f"  {code:<3}", said[code]) for code in (0, 2, *sorted(own))]


def _options(parser: argparse.ArgumentParser) -> list[argparse.Action]:
    """Return the options, without --help, --help-all and old names."""
    hidden = ("help", "help_all")
    actions = [action for action in parser._actions if action.option_strings and action.dest not in hidden]
    return [action for action in actions if action.help not in (None, argparse.SUPPRESS)]


def _positionals(parser: argparse.ArgumentParser) -> list[argparse.Action]:
    return [action for action in parser._actions if not action.option_strings]


def _usage(parser: argparse.ArgumentParser) -> str:
    """Return the command line with [OPTIONS] for every option."""
    if parser.usage:
        return parser.usage
    formatter = parser._get_formatter()
    formatter.add_usage(None, _positionals(parser), [], prefix="")
    return formatter.format_help().strip().replace(parser.prog, f"{parser.prog} [OPTIONS]", 1)


def _row(head: str, text: str) -> str:
    return textwrap.fill(
        text, 100, initial_indent=f"{head} ", subsequent_indent=" " * (len(head) + 1), break_on_hyphens=False
    )
