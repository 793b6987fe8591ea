"""Find the known cause of a failed log, and its fix.

Where no cause is known it says the first error, and of a text that a process on MPS wrote what it means.

Any log will do: of a build, of pip, of CI, of a test run. It may be cut, coloured, prefixed and compressed (.gz).
A cause that is not sure is not named; one that is only the likeliest is called probable, with the runner-up.
With --exit, --signal, --host, --macos or --torch the text is judged as what one process wrote: the answer is a
category (assertion, gpu_fault, out_of_memory ...) and whom it speaks of.
The exit status is 0 whatever was found.
"""

from __future__ import annotations

import argparse
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from packaging.version import Version

from mps_build.common.console import Console
from mps_build.common.errors import UsageError
from mps_build.common.logs.file import read_log_file
from mps_build.common.reporting import Result
from mps_build.host.triage import Explained, WrittenBy, judge, render, render_causes, render_device_text
from mps_build.host.triage.tools.read import read_tool_output

TASK = ("host", 2)
FIRST = ("--causes", "--recipe", "--host", "--macos", "--torch")
DOCUMENT = (
    "cause:string|null certainty:string|null runner_up:object|null notes:array first_error:object|null "
    "category:string|null detail:object|null "
    "tool_output:object|array|null ?causes:array"
)
EXAMPLES = (
    "build.log",
    "build.log.gz --recipe v2.6.0",
    "- < build.log",
    "crash.txt --exit 134 --macos 15.3 --torch 2.11.0",
    "--causes libomp",
)
# What the document holds of a log; null where none was read.
_OF_A_LOG = ("certainty", "runner_up", "first_error", "category", "detail", "tool_output")


@dataclass(frozen=True, slots=True, kw_only=True)
class Options:
    """What the command line says."""

    log: str | None
    causes: str | None
    recipe: str | None
    exit: int | None
    signal: str | None
    host: Path | None
    macos: str | None
    torch: str | None
    virtual: bool | None


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the command's arguments and options to its parser."""
    parser.add_argument("log", metavar="LOG", nargs="?", help="the file; - reads standard input")
    parser.add_argument(
        "--causes",
        metavar="WORDS",
        nargs="?",
        const="",
        help="list the known causes, or explain those with an id or words",
    )
    parser.add_argument("--recipe", metavar="RECIPE", help="the recipe that was built (2.6.0, 2.6, nightly, a path)")
    process = parser.add_argument_group("the process that wrote the text")
    process.add_argument("--exit", metavar="N", type=int, help="its exit status (128 + n or -n for a signal)")
    process.add_argument("--signal", metavar="NAME", help="the signal it died of (SIGSEGV)")
    process.add_argument("--host", metavar="FILE", type=Path, help="the recording of its Mac (doctor --record FILE)")
    process.add_argument("--macos", metavar="VERSION", help="the macOS version it ran on, such as 15.3")
    process.add_argument("--torch", metavar="VERSION", help="the version of torch it ran, such as 2.6.0")
    process.add_argument("--virtual", action="store_true", default=None, help="it ran on a virtual Mac")


def run(options: Options, console: Console) -> Result:
    """Read the text and print its cause; the exit status is 0 whenever the text could be read."""
    if options.causes is not None:
        return _list(options.causes, console)
    if options.log is None:
        raise UsageError("which log?", hint="name a file, or - for standard input; --causes lists what is known")
    text = read_log_file(options.log)
    release = _release(options.recipe)
    process = WrittenBy(exit=options.exit, signal=options.signal, host=_host(options))
    found = judge(text, release=release, written_by=process)
    _print(found, console)
    return Result(document=_document(options, text, release, found), cause=found.log.cause, hint=found.log.fix)


def _list(words: str, console: Console) -> Result:
    lines = render_causes(words)
    if not lines:
        raise UsageError(f"no known cause has the words {words!r}", hint="--causes alone lists all of them")
    for line in lines:
        console.print(line)
    return Result(document={**dict.fromkeys(_OF_A_LOG), "notes": [], "causes": [line for line in lines if line]})


def _print(found: Explained, console: Console) -> None:
    if found.device is None or found.log.cause or found.log.failed:
        for line in render(found.log, explained=found.device is not None and found.device.verdict != "unknown"):
            console.print(line)
    for line in render_device_text(found.device) if found.device else ():
        console.print(line)


def _document(options: Options, text: str, release: Version | None, found: Explained) -> dict[str, Any]:
    device, fields = found.device, ("category", "verdict", "stop", "from", "detail", "advice")
    return {
        "log": options.log if options.log != "-" else None,
        "release": str(release) if release else None,
        **found.log.document(),
        **(device.document() if device else dict.fromkeys(fields)),
        "tool_output": read_tool_output(text),
    }


def _release(argument: str | None) -> Version | None:
    """Return the release to leave out rows of others by; any version will do, with a recipe of it or without."""
    if argument is None:
        return None
    try:
        return Version(argument)
    except ValueError:
        from mps_build.common.recipe.catalogue import find_recipe

        return find_recipe(argument).release


def _host(options: Options) -> dict[str, Any]:
    facts: dict[str, Any] = {}
    if options.host:
        from mps_build.host.host import observe
        from mps_build.host.probes.probers import RecordedProber
        from mps_build.host.probes.recording import load_recording

        host = observe(RecordedProber(load_recording(options.host)))
        facts = {"macos": host.macos, "virtual": host.virtual if isinstance(host.virtual, bool) else None}
    facts |= {"macos": options.macos or facts.get("macos"), "torch": options.torch}
    facts |= {"virtual": options.virtual or facts.get("virtual")}
    for name in ("macos", "torch"):
        _check_version(f"--{name}", facts[name])
    return {name: value for name, value in facts.items() if value is not None}


def _check_version(option: str, value: str | None) -> None:
    try:
        Version(value or "0")
    except ValueError as error:
        raise UsageError(f"{option}: {value!r} is not a version", hint=f"write it as in {option} 15.3") from error
