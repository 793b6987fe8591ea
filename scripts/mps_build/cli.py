"""From arguments to an exit status: finds the verb, runs it, catches what may go wrong.

The only module that catches `MpsBuildError` for good, and the only one that ends the process.
"""

from __future__ import annotations

import argparse
import errno
import importlib
import json
import os
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from types import ModuleType
from typing import Any

from . import __version__
from .errors import DiskFull, MpsBuildError, UsageError

VERBS: Mapping[str, str] = {
    "doctor": "this host, or a recorded one, against one recipe or all",
    "build_wheel": "a recipe to an audited wheel",
    "audit_wheel": "what a wheel holds, and whether that is right",
    "triage": "a failed log to its known cause and the fix",
    "verify_mps": "a torch to a verdict: does MPS on this Mac give right answers?",
    "rehearse": "a macOS recipe tried on Linux: patches, lock, configure, C++; --wheel, --darwin",
    "compare": "two wheels, or two records, side by side",
    "lock": "the exact versions and hashes of each recipe's build requirements",
    "matrix": "the recipes and their Pythons, as JSON for a workflow or as a table for the README",
    "refresh_patches": "which patches apply to a tree or a tag, are upstream already, or conflict",
    "adopt": "a recording that a user sent, checked and filed among the tests",
    "schemas": "the JSON Schemas of our data files, from the models that read them",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """How a verb ended without an exception: its JSON document and, if not 0, its cause."""

    document: Mapping[str, Any] = field(default_factory=dict)
    exit_code: int = 0
    cause: str | None = None
    hint: str | None = None


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
        verb = arguments.pop(0)
    if verb not in VERBS:
        print(f"error: no verb {verb!r}\n{_overview()}", file=sys.stderr)
        return UsageError.exit_code
    module = importlib.import_module(f".verbs.{verb}", __package__)
    parser = _parser(verb, module)
    try:
        parsed = parser.parse_args(arguments)
    except SystemExit as stop:
        return int(stop.code or 0)
    return _run(module, parsed)


def _run(module: ModuleType, parsed: argparse.Namespace) -> int:
    from .console import Console

    console = Console()
    try:
        outcome: Outcome = module.run(parsed, console)
    except MpsBuildError as error:
        outcome = _outcome_of(error)
        _print_error(str(error), error.hint)
    except KeyboardInterrupt:
        outcome = Outcome(exit_code=130, cause="interrupted", hint="the same command again goes on where it stopped")
        _print_error("interrupted", outcome.hint)
    except OSError as error:
        if error.errno not in (errno.ENOSPC, errno.EDQUOT):
            raise
        full = DiskFull(
            f"no space left: {error}", hint="free some space (`nox -s clean` shows ours) and run the same command again"
        )
        outcome = _outcome_of(full)
        _print_error(str(full), full.hint)
    if parsed.json:
        _write_json(parsed.json, outcome)
    return outcome.exit_code


def _parser(verb: str, module: ModuleType) -> argparse.ArgumentParser:
    examples = "\n".join(f"  nox -s {verb} -- {example}".rstrip(" -") for example in module.EXAMPLES)
    parser = argparse.ArgumentParser(
        prog=f"nox -s {verb} --",
        description=module.__doc__,
        epilog=f"examples:\n{examples}",
        formatter_class=argparse.RawDescriptionHelpFormatter,
        allow_abbrev=False,
    )
    parser.add_argument("--json", type=Path, metavar="FILE", help="write the result as JSON as well")
    module.add_arguments(parser)
    return parser


def _overview() -> str:
    width = max(map(len, VERBS))
    rows = "\n".join(f"  {name:<{width}}  {summary}" for name, summary in VERBS.items())
    return f"usage: mps-build VERB [ARGUMENTS]   (the same as: nox -s VERB -- ARGUMENTS)\n\n{rows}"


def _outcome_of(error: MpsBuildError) -> Outcome:
    return Outcome(
        document={"error": str(error), **error.document}, exit_code=error.exit_code, cause=error.cause, hint=error.hint
    )


def _print_error(message: str, hint: str | None) -> None:
    sys.stdout.flush()
    print(f"error: {message}", file=sys.stderr)
    if hint:
        print(f"hint: {hint}", file=sys.stderr)


def _write_json(path: Path, outcome: Outcome) -> None:
    document = {**outcome.document, "exit_code": outcome.exit_code, "cause": outcome.cause, "hint": outcome.hint}
    beside = path.with_name(f".{path.name}.{os.getpid()}")
    beside.write_text(json.dumps(document, indent=2, ensure_ascii=False) + "\n", encoding="utf-8")
    beside.replace(path)
