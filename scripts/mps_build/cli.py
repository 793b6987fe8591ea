"""From arguments to an exit status: finds the command, runs it, catches what may go wrong.

The only module that catches `MpsBuildError` for good, and the only one that ends the process.
"""

from __future__ import annotations

import errno
import os
import shlex
import signal
import sys
import traceback
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path

from . import __version__
from .commands.shared.catalogue import COMMANDS, TASKS, command_line
from .common.errors import HostError, MpsBuildError, UsageError, reason_of
from .common.files import machine_fault, refusal
from .common.reporting import Result
from .common.standard_streams import CUT_OFF, OutputLost, guarded_streams
from .common.stopping import exit_status, signals_raise, stopped_by

_JSON_HINT = "name a file in an existing folder"


def main(command: str | None = None, argv: Sequence[str] | None = None) -> int:
    """Run one command and return its exit status; `command` None takes it from the arguments."""
    arguments = list(sys.argv[1:] if argv is None else argv)
    _close_to_others()
    with guarded_streams():
        try:
            status = _main(command, arguments)
            sys.stdout.flush()
        except OutputLost as lost:
            return _tell(_lost(lost)).exit_code
        return status


def _close_to_others() -> None:
    """Let nobody else write to what we make, where the umask would; one that a group shares its files by stays."""
    umask = os.umask(0o022)
    if umask & 0o002:
        os.umask(umask)


def _main(command: str | None, arguments: list[str]) -> int:
    try:
        if command is None:
            if arguments[:1] in (["--version"], ["-V"]):
                print(f"mps-build {__version__}")
                return 0
            if arguments[:1] in ([], ["-h"], ["--help"], ["help"]):
                return _help(arguments[1:]) if arguments else _print_overview(UsageError.exit_code)
            arguments, volume = _volume(arguments)
            if not arguments:
                return _print_overview(UsageError.exit_code)
            command = arguments.pop(0).replace("-", "_")
            return _named(command, arguments, volume)
        return _named(command, arguments)
    except ModuleNotFoundError as error:
        return _missing_package(error, command)


def _volume(arguments: list[str]) -> tuple[list[str], int]:
    """Take -q and -v from the front: -1 prints errors alone, 1 also every program that is started."""
    words = {"-q": -1, "--quiet": -1, "-v": 1, "--verbose": 1}
    volume = 0
    while arguments and arguments[0] in words:
        volume = words[arguments[0]]
        arguments = arguments[1:]
    return arguments, volume


def _named(command: str, arguments: list[str], volume: int = 0) -> int:
    if command not in COMMANDS:
        return _no_such(command)
    return _run(command, arguments, volume)


def _help(words: Sequence[str]) -> int:
    """`help` is the overview, `help COMMAND` that command's --help."""
    return main(words[0], ["--help"]) if words else _print_overview(0)


def _no_such(command: str) -> int:
    from difflib import get_close_matches

    if command.startswith("_"):
        command = command.replace("_", "-")
    near = get_close_matches(command, COMMANDS, n=1, cutoff=0.6)
    near = near or [each for each in COMMANDS if command in each.split("_")][:1]
    _print_error(f"no command {command!r}", f"did you mean `mps-build {near[0]}`?" if near else None)
    return UsageError.exit_code if near else _print_overview(UsageError.exit_code)


def _run(command: str, arguments: Sequence[str], volume: int = 0) -> int:
    from .commands.shared.parser import module_of, parse_options
    from .common.console import Console
    from .common.plain_text import shown
    from .common.process import trace_programs

    path = _json_path(arguments)
    if path is not None and path != Path("-") and not path.parent.is_dir():
        # Before the work, not after hours of it.
        missing = UsageError(f"--json {path} cannot be written: there is no folder {path.parent}", hint=_JSON_HINT)
        return _tell(_result_of(missing)).exit_code
    console = Console(to_stderr=path == Path("-"), quiet=volume < 0)
    if volume > 0:
        trace_programs(lambda command: print(shown(f"+ {command}"), file=sys.stderr, flush=True))
    with signals_raise():
        try:
            result: Result = module_of(command).run(parse_options(command, arguments), console)
            sys.stdout.flush()
        except OutputLost as lost:
            result = _lost(lost) if stopped_by() is None else _interrupted(command, arguments)
        except SystemExit as stop:  # --help
            return int(stop.code or 0)
        except MpsBuildError as error:
            fault = machine_fault(error)
            result = _result_of(fault or error, hint=_next_command(error, command))
        except KeyboardInterrupt as stop:
            result = _interrupted(command, arguments, stop)
        except ModuleNotFoundError as error:
            if not _is_foreign(error):
                raise
            return _missing_package(error, command)
        except Exception as error:
            # After a signal an error is its consequence: a terminal that is gone, a program that was ended.
            result = _unexpected(error) if stopped_by() is None else _interrupted(command, arguments)
        return _write_json(command, arguments, _tell(result))


def _interrupted(command: str, arguments: Sequence[str], stop: BaseException | None = None) -> Result:
    status = exit_status(stop)
    result = Result(exit_code=status, cause="interrupted", hint=_to_continue(command, arguments))
    by = "" if status == 130 else f" by {signal.Signals(status - 128).name}"
    with suppress(OutputLost):  # after SIGHUP there may be nobody to read it
        sys.stdout.flush()
    _print_error(f"interrupted{by}", result.hint)
    return result


def _tell(result: Result) -> Result:
    """Print the error that a result holds, if any."""
    if "error" in result.document:
        _print_error(str(result.document["error"]), result.hint)
    return result


def _is_foreign(error: ModuleNotFoundError) -> bool:
    return not (error.name or "").startswith("mps_build")


def _missing_package(error: ModuleNotFoundError, command: str | None) -> int:
    """A checkout run by a Python that lacks our dependencies: name the command that installs them."""
    if not _is_foreign(error):
        raise error
    from .common.workspace import CHECKOUT, in_checkout

    session = ""
    if in_checkout() and command is not None and command in COMMANDS:
        session = f"`{command_line(command)}` installs what it needs; or "
    install = f"`{sys.executable} -m pip install {shlex.quote(str(CHECKOUT)) if in_checkout() else 'mps-build'}`"
    print(f"error: this Python lacks the package {error.name}\nhint: {session}{install}", file=sys.stderr)
    return UsageError.exit_code


def _to_continue(command: str, arguments: Sequence[str]) -> str:
    return f"what is done is kept; to go on: {command_line(command, shlex.join(arguments))}"


def _unexpected(error: Exception) -> Result:
    """Return the result of the machine's trouble, a refused path, or a bug of ours: only the last shows a traceback."""
    if (known := machine_fault(error) or refusal(error)) is not None:
        return _result_of(known)
    from mps_build.common.plain_text import shown

    print(shown("".join(traceback.format_exception(error))), end="", file=sys.stderr)
    hint = "please report it with the lines above"
    return Result(document={"error": f"a bug of mps-build: {error!r}"}, exit_code=1, cause="bug", hint=hint)


def _lost(lost: OutputLost) -> Result:
    """Return the result of a command whose standard output takes no more: cut off by its reader is no error."""
    error = lost.error
    if error.errno == errno.EPIPE:
        return Result(exit_code=CUT_OFF, cause="cut_off", hint="the reader of standard output closed it")
    if error.errno == errno.EBADF:
        closed = UsageError("standard output is closed", hint="send it somewhere: `> /dev/null` drops it")
        return _result_of(closed)
    error.filename = "standard output"
    return _result_of(machine_fault(error) or HostError(f"standard output: {error.strerror}"))


def _print_overview(status: int) -> int:
    """Print the commands by task: on stdout where that was wanted, else on stderr."""
    from .common.workspace import in_checkout

    width = max(map(len, COMMANDS))
    tasks = (_task(name, commands, width) for name, commands in TASKS.items())
    same = "   (the same as: nox -s COMMAND -- ARGUMENTS)" if in_checkout() else ""
    more = "`mps-build help COMMAND` shows its options, with examples"
    text = f"usage: mps-build [-q|-v] COMMAND [OPTIONS]{same}\n\n" + "\n\n".join(tasks) + f"\n\n{more}"
    print(text, file=sys.stderr if status else sys.stdout)
    return status


def _task(name: str, commands: Mapping[str, str], width: int) -> str:
    return "\n".join([f"{name}:", *(_row(f"  {each:<{width}}  ", text) for each, text in commands.items())])


def _row(head: str, text: str) -> str:
    """Return a row of the overview, wrapped under its own beginning where the terminal is narrow."""
    from textwrap import wrap

    try:
        columns = os.get_terminal_size().columns
    except OSError:
        return head + text
    return head + f"\n{' ' * len(head)}".join(wrap(text, max(columns - len(head), 20)))


def _result_of(error: MpsBuildError, *, hint: str | None = None) -> Result:
    document = {"error": str(error), **error.document}
    return Result(document=document, exit_code=error.exit_code, cause=error.cause, hint=error.hint or hint)


def _next_command(error: MpsBuildError, command: str) -> str:
    """Return what to type after an error that says no more than what is wrong."""
    if isinstance(error, UsageError):
        return f"`{command_line(command, '--help')}` shows its options, with examples"
    return "the same command again continues where it stopped; `nox -s support` packs what an issue needs, scrubbed"


def _print_error(message: str, hint: str | None) -> None:
    from mps_build.common.plain_text import shown

    from .common.console import as_called

    sys.stdout.flush()
    print(f"error: {shown(as_called(message))}", file=sys.stderr)
    if hint:
        print(f"hint: {shown(as_called(hint))}", file=sys.stderr)


def _write_json(command: str, arguments: Sequence[str], result: Result) -> int:
    """Write the document where --json says, also for arguments that were wrong; return the exit status."""
    path = _json_path(arguments)
    if path is None:
        return result.exit_code
    from .common.files import write_whole
    from .common.json_text import head, to_json
    from .common.scrubbing.scrubber import without_secrets

    document = {
        **head(command),
        **without_secrets({**result.document, "hint": result.hint}),
        "exit_code": result.exit_code,
        "cause": result.cause,
    }
    if path == Path("-"):
        # GitHub reads `##[` as a command wherever it stands, and JSON can say it otherwise.
        sys.stdout.write(to_json(document, encoding=sys.stdout.encoding).replace("##[", "##\\u005b"))
        return result.exit_code
    try:
        write_whole(path, to_json(document))
    except OSError as error:
        fault = machine_fault(error)
        hint = fault.hint if fault else _JSON_HINT
        _print_error(f"--json {path} cannot be written: {reason_of(error)}", hint)
        return result.exit_code or (fault or UsageError).exit_code
    return result.exit_code


def _json_path(arguments: Sequence[str]) -> Path | None:
    """Return what --json names; `-` is standard output, and what a person reads then goes to standard error."""
    import argparse

    finder = argparse.ArgumentParser(add_help=False, allow_abbrev=False, exit_on_error=False)
    finder.add_argument("--json", type=Path)
    try:
        path: Path | None = finder.parse_known_args(list(arguments))[0].json
    except argparse.ArgumentError:
        return None
    return path
