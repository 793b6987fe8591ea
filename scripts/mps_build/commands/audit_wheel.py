"""What a wheel holds, and whether that is right: any torch wheel for Apple silicon, on any system.

WHEEL is a file, or a requirement such as torch==2.15.0, fetched for macOS arm64 and the newest
Python that has it. Files are held to the strict profile, what we ship and what official wheels have
kept since 2.12; fetched ones to the official profile, where the known defects of old official
wheels are warnings, and any other is an error. Other wheels are held to the rules that any Mac
wheel must keep. `--python PATH` without a WHEEL reads the torch that an interpreter has, which is
only asked where it lies. The exit status is 0 if the wheel is accepted, 9 if it is rejected.
"""

from __future__ import annotations

import argparse
import json
import shutil
from pathlib import Path

from mps_build.common.console import Console
from mps_build.common.errors import AuditRejected, UsageError
from mps_build.common.process import Command, capture
from mps_build.common.result import Result
from mps_build.common.workspace import cache_folder
from mps_build.inspection.audit import Audit, Expectation, audit_installed, audit_wheel
from mps_build.inspection.audit.model import PROFILES
from mps_build.inspection.audit.render import fact_rows, finding_lines, verdict_line

# Asked of the other interpreter: where each distribution of a name lies (two of one name shadow each other).
_WHERE = """
import importlib.metadata, json, os, re, sys
places = []
for each in importlib.metadata.distributions(name=sys.argv[1]):
    if re.sub("[-_.]+", "-", each.metadata["Name"] or "").lower() == sys.argv[1]:
        folder = os.path.realpath(str(each._path))
        if list(os.path.split(folder)) not in places:
            places.append(list(os.path.split(folder)))
print(json.dumps(places))
"""

EXAMPLES = (
    "wheelhouse/torch-2.15.0-cp312-cp312-macosx_14_0_arm64.whl",
    "torch==2.15.0",
    "torch==2.6.0 --python 3.12 --profile strict",
    "--python ~/venv/bin/python",
    "--quick --json audit.json torch-2.15.0-cp312-cp312-macosx_14_0_arm64.whl",
)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("wheel", metavar="WHEEL", nargs="?", help="a .whl file, or a requirement such as torch==2.15.0")
    parser.add_argument("--profile", choices=PROFILES, help="default: strict for a file, official for a requirement")
    parser.add_argument("--quick", action="store_true", help="names and headers only: a fraction of a second")
    parser.add_argument(
        "--python",
        metavar="X.Y|PATH",
        help="the Python of a requirement (default: the newest), or an interpreter that has torch",
    )
    parser.add_argument("--commit", metavar="SHA", help="the commit it must be built from")
    parser.add_argument("--allow-jit-shaders", action="store_true", help="accept Metal kernels compiled at first use")
    parser.add_argument("--without-metal4", action="store_true", help="accept a wheel without the Metal 4 kernels")


def run(arguments: argparse.Namespace, console: Console) -> Result:
    audit = _audit(arguments, console)
    print_audit(audit, console)
    if audit.verdict == "accepted":
        return Result(document=audit.document())
    return Result(
        document=audit.document(),
        exit_code=AuditRejected.exit_code,
        cause=AuditRejected.cause,
        hint="each rule above says what is wrong and why it matters; warnings do not reject",
    )


def _audit(arguments: argparse.Namespace, console: Console) -> Audit:
    expectation = _expectation(arguments)
    if arguments.wheel is None:
        if arguments.python is None:
            raise UsageError("no WHEEL", hint="give a .whl file, or a requirement such as torch==2.15.0")
        root, info = find_installed(arguments.python)
        return audit_installed(
            root,
            info,
            profile=arguments.profile or "official",
            expectation=expectation,
            quick=arguments.quick,
            reporter=console,
        )
    path, is_fetched = find_wheel(arguments.wheel, arguments.python, console)
    return audit_wheel(
        path,
        profile=arguments.profile or ("official" if is_fetched else "strict"),
        expectation=expectation,
        quick=arguments.quick,
        reporter=console,
    )


def find_installed(python: str, distribution: str = "torch") -> tuple[Path, str]:
    """Return the site-packages and the `.dist-info` folder of a distribution that an interpreter has.

    Raises:
        UsageError: no interpreter, no such distribution, or several.
    """
    found = capture(Command(argv=(python, "-I", "-c", _WHERE, distribution)), timeout_seconds=60)
    if not found.ok:
        said = (found.stderr.strip().splitlines() or ["it did not answer"])[-1]
        raise UsageError(f"--python {python}: cannot be asked: {said}", hint="give the path of a Python interpreter")
    places = json.loads(found.stdout)
    if len(places) != 1:
        listed = "".join(f"\n  {root}/{info}" for root, info in places)
        raise UsageError(f"{python} has {len(places)} distributions called {distribution}{listed or ''}")
    root, info = places[0]
    return Path(root), info


def find_wheel(text: str, python: str | None, console: Console) -> tuple[Path, bool]:
    """Return the wheel that `text` means, and whether it was fetched for a requirement.

    Raises:
        UsageError: no such file, or no such wheel.
    """
    path = Path(text).expanduser()
    looks_like_a_path = "/" in text or path.suffix == ".whl"
    if path.exists() or looks_like_a_path:
        if python is not None:
            raise UsageError(f"--python {python}: {path} is a file, for the Python it was built for")
        return path, False
    from mps_build.common.wheels.download import fetch_wheel

    cache = cache_folder()
    log = cache / "logs" / "fetch_wheel.log"
    fetched = fetch_wheel(text, python=python, cache=cache / "wheels", log=log, reporter=console)
    console.print(f"{'from the cache' if fetched.from_cache else 'fetched'}: {fetched.path}", style="dim")
    return fetched.path, True


def print_audit(audit: Audit, console: Console) -> None:
    """Print facts, findings and, last, the verdict."""
    width = min(shutil.get_terminal_size((100, 24)).columns, 120)
    title, *rows = fact_rows(audit.facts_document)
    console.table(title, rows)
    console.print()
    for text, style in finding_lines(audit.findings, width=width):
        console.print(text, style=style)
    if audit.findings:
        console.print()
    text, style = verdict_line(audit)
    console.print(text, style=style)


def _expectation(arguments: argparse.Namespace) -> Expectation | None:
    if not (arguments.commit or arguments.allow_jit_shaders or arguments.without_metal4):
        return None
    commit = arguments.commit
    if commit is not None and (len(commit) != 40 or set(commit) - set("0123456789abcdef")):
        raise UsageError(f"--commit {commit}: no commit", hint="give all 40 digits; a short one may name several")
    return Expectation(
        commit=commit, allow_jit_shaders=arguments.allow_jit_shaders, without_metal4=arguments.without_metal4
    )
