"""From arguments to an exit status: finds the verb, runs it, catches what may go wrong.

The only module that catches `MpsBuildError` for good, and the only one that ends the process.
"""

from __future__ import annotations

import argparse
import errno
import importlib
import json
import os
import re
import shlex
import sys
import traceback
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import ModuleType
from typing import NoReturn

from mps_build import __version__
from mps_build.common.errors import DiskFull, MpsBuildError, UsageError

from .common.result import Result

VERBS: Mapping[str, str] = {
    "doctor": "this host, or a recorded one, against one recipe or all",
    "build_wheel": "a recipe to an audited wheel",
    "build_companions": "torchvision and torchaudio for a torch that was built here",
    "audit_wheel": "what a wheel holds, and whether that is right",
    "triage": "a failed log to its known cause and the fix",
    "verify_mps": "a torch to a verdict: does MPS on this Mac give right answers?",
    "verify_training": "Accelerate and Transformers on a torch: do they train on this Mac as their pages promise?",
    "benchmark_mps": "training and inference on the device against the CPU, as announced in 2022",
    "repro": "one failure of a record as a script of its own, and as an issue's text",
    "bisect_mps": "which version, and which commit, changed an answer",
    "support": "recording, receipts, logs and versions as one scrubbed file, for an issue",
    "rehearse": "a macOS recipe tried on Linux: patches, lock, configure, C++; --wheel, --darwin",
    "compare": "two wheels, or two records, side by side",
    "op_coverage": "which operators have an MPS kernel, run through a composite, or fall back to the CPU",
    "build_report": "where a build's time went, its critical path, and what the next lever would save",
    "shell": "a shell, or one command, in the exact environment of a build",
    "clean": "what lies in work folder and cache: sizes, ages, and its removal",
    "lock": "the exact versions and hashes of each recipe's build requirements",
    "matrix": "the recipes and their Pythons, as JSON for a workflow or as a table for the README",
    "refresh_patches": "which patches apply to a tree or a tag, are upstream already, or conflict",
    "adopt": "a recording that a user sent, checked and filed among the tests",
    "plan_fleet": "how long so many Macs take to build and test so much",
    "publish_index": "a static package index of wheels, with hashes, receipts and attestations",
    "verify_provenance": "a downloaded wheel against its receipt, its attestation and the recipe's pins",
    "ci": "what a workflow asks beside the sessions: trust, refs, outputs, upstream's commit, issues",
    "schemas": "the JSON Schemas of our data files, from the models that read them",
    "completion": "a completion script for bash, zsh or fish",
}


def main(verb: str | None = None, argv: Sequence[str] | None = None) -> int:
    """Run one verb and return its exit status; `verb` None takes it from the arguments."""
    arguments = list(sys.argv[1:] if argv is None else argv)
    if verb is None:
        if arguments[:1] in (["--version"], ["-V"]):
            print(f"mps-build {__version__}")
            return 0
        if not arguments or arguments[0] in ("-h", "--help"):
            print(_overview())
            return 0 if arguments else UsageError.exit_code
        verb = arguments.pop(0).replace("-", "_")
    if verb not in VERBS:
        return _no_such(verb)
    return _run(verb, arguments)


def parser_of(verb: str) -> argparse.ArgumentParser:
    """Return the parser of a verb's arguments, as --help shows it."""
    return _parser(verb, importlib.import_module(f".commands.{verb}", __package__))


def _no_such(verb: str) -> int:
    from difflib import get_close_matches

    near = get_close_matches(verb, VERBS, n=1, cutoff=0.6) or [each for each in VERBS if verb in each.split("_")][:1]
    _print_error(f"no verb {verb!r}", f"did you mean `mps-build {near[0]}`?" if near else None)
    if not near:
        print(_overview(), file=sys.stderr)
    return UsageError.exit_code


class _Parser(argparse.ArgumentParser):
    """Says what is wrong with the arguments as every other fault is said."""

    def error(self, message: str) -> NoReturn:
        hint = f"`{self.prog} --help` shows them all"
        wrong = re.search(r"unrecognized arguments:.*?(--[\w-]+)", message)
        if wrong:
            from difflib import get_close_matches

            near = get_close_matches(wrong[1], self._option_string_actions, n=1)
            hint = f"did you mean {near[0]}? {hint}" if near else hint
        raise UsageError(message, hint=hint)


def _run(verb: str, arguments: Sequence[str]) -> int:
    from mps_build.common.console import Console

    console = Console()
    try:
        module = importlib.import_module(f".commands.{verb}", __package__)
        parsed = _parsed(_parser(verb, module), arguments, takes_command=hasattr(module, "TAKES_COMMAND"))
        result: Result = module.run(parsed, console)
    except SystemExit as stop:  # --help
        return int(stop.code or 0)
    except MpsBuildError as error:
        result = _outcome_of(error, hint=_next_command(error, verb))
    except KeyboardInterrupt:
        result = Result(exit_code=130, cause="interrupted", hint=_to_go_on(verb, arguments))
        _print_error("interrupted", result.hint)
    except Exception as error:
        result = _unexpected(error)
    if "error" in result.document:
        _print_error(str(result.document["error"]), result.hint)
    return _write_json(arguments, result)


def _to_go_on(verb: str, arguments: Sequence[str]) -> str:
    words = f" -- {shlex.join(arguments)}" if arguments else ""
    return f"what is done is kept; to go on: nox -s {verb}{words}"


def _parsed(parser: argparse.ArgumentParser, arguments: Sequence[str], *, takes_command: bool) -> argparse.Namespace:
    """Return the arguments; what stands behind `--` is a command, for the verbs that run one."""
    own, command = list(arguments), []
    if takes_command and "--" in own:
        place = own.index("--")
        own, command = own[:place], own[place + 1 :]
    return parser.parse_args(own, argparse.Namespace(command=command, given=tuple(own)))


def _unexpected(error: Exception) -> Result:
    """Return the result of a full disk, or of a bug of ours: only the latter shows a traceback."""
    if isinstance(error, OSError) and error.errno in (errno.ENOSPC, errno.EDQUOT):
        hint = "free some space (`nox -s clean` shows ours) and run the same command again"
        return _outcome_of(DiskFull(f"no space left: {error}", hint=hint))
    traceback.print_exception(error)
    hint = "please report it with the lines above"
    return Result(document={"error": f"a bug of mps-build: {error!r}"}, exit_code=1, cause="bug", hint=hint)


def _parser(verb: str, module: ModuleType) -> argparse.ArgumentParser:
    from mps_build.common.console import as_called

    examples = "\n".join(as_called(f"  nox -s {verb} -- {example}".rstrip(" -")) for example in module.EXAMPLES)
    parser = _Parser(
        prog=as_called(f"nox -s {verb} --").strip(),
        description=as_called(module.__doc__ or ""),
        epilog=f"examples:\n{examples}",
        formatter_class=argparse.RawDescriptionHelpFormatter,
        allow_abbrev=False,
    )
    parser.add_argument("--json", type=Path, metavar="FILE", help="write the result as JSON as well")
    module.add_arguments(parser)
    return parser


def _row(head: str, text: str) -> str:
    """Return a row of the overview, wrapped under its own beginning where the terminal is narrow."""
    from textwrap import wrap

    try:
        columns = os.get_terminal_size().columns
    except OSError:
        return head + text
    return head + f"\n{' ' * len(head)}".join(wrap(text, max(columns - len(head), 20)))


def _overview() -> str:
    from mps_build.common.workspace import in_checkout

    width = max(map(len, VERBS))
    rows = "\n".join(_row(f"  {name:<{width}}  ", summary) for name, summary in VERBS.items())
    same = "   (the same as: nox -s VERB -- ARGUMENTS)" if in_checkout() else ""
    more = "`mps-build VERB --help` shows its arguments, with examples"
    return f"usage: mps-build VERB [ARGUMENTS]{same}\n\n{rows}\n\n{more}"


def _outcome_of(error: MpsBuildError, *, hint: str | None = None) -> Result:
    document = {"error": str(error), **error.document}
    return Result(document=document, exit_code=error.exit_code, cause=error.cause, hint=error.hint or hint)


def _next_command(error: MpsBuildError, verb: str) -> str:
    """Return what to type after an error that says no more than what is wrong."""
    if isinstance(error, UsageError):
        return f"`nox -s {verb} -- --help` shows what it takes, with examples"
    return "the same command again goes on where it stopped; `nox -s support` packs what an issue needs, scrubbed"


def _print_error(message: str, hint: str | None) -> None:
    from mps_build.common.console import as_called

    sys.stdout.flush()
    print(f"error: {as_called(message)}", file=sys.stderr)
    if hint:
        print(f"hint: {as_called(hint)}", file=sys.stderr)


def _write_json(arguments: Sequence[str], result: Result) -> int:
    """Write the document where --json says, also for arguments that were wrong; return the exit status."""
    finder = argparse.ArgumentParser(add_help=False, allow_abbrev=False, exit_on_error=False)
    finder.add_argument("--json", type=Path)
    try:
        path: Path | None = finder.parse_known_args(list(arguments))[0].json
    except argparse.ArgumentError:
        return result.exit_code
    if path is None:
        return result.exit_code
    document = {**result.document, "exit_code": result.exit_code, "cause": result.cause, "hint": result.hint}
    beside = path.with_name(f".{path.name}.{os.getpid()}")
    try:
        beside.write_text(json.dumps(document, indent=2, ensure_ascii=False) + "\n", encoding="utf-8")
        beside.replace(path)
    except OSError as error:
        _print_error(f"--json {path} cannot be written: {error}", "name a file in a folder that is there")
        return result.exit_code or UsageError.exit_code
    return result.exit_code
