"""Which wheel an argument means: a file, a requirement, an installed distribution, or the newest nightly."""

from __future__ import annotations

import argparse
import os
from collections.abc import Iterable
from pathlib import Path

from mps_build.common.console import Console
from mps_build.common.errors import UsageError
from mps_build.common.json_text import parse_json
from mps_build.common.process import Command, capture
from mps_build.common.wheels.pip_call import VARIABLE, index_variables, newest_nightly, nightly_index
from mps_build.common.workspace import cache_folder, expanded

# Run by the other interpreter: where each distribution of a name lies (two of one name shadow each other).
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


def find_installed(python: str, distribution: str = "torch") -> tuple[Path, str]:
    """Return the site-packages and the `.dist-info` folder of a distribution that an interpreter has.

    Raises:
        UsageError: no interpreter, no such distribution, or several.
    """
    found = capture(Command(argv=(python, "-I", "-c", _WHERE, distribution)), timeout_seconds=60)
    if not found.ok:
        said = (found.stderr.strip().splitlines() or ["it did not answer"])[-1]
        said = said if said.startswith(("Traceback", "ModuleNotFound", "dyld")) else "it does not answer as a Python"
        raise UsageError(f"--python {python}: cannot be tested: {said}", hint="give the path of a Python interpreter")
    try:
        places = parse_json(found.stdout)
    except ValueError:
        raise UsageError(
            f"--python {python}: does not answer as a Python", hint="give the path of a Python interpreter"
        ) from None
    if len(places) != 1:
        listed = "".join(f"\n  {root}/{info}" for root, info in places)
        raise UsageError(f"{python} has {len(places)} distributions called {distribution}{listed or ''}")
    root, info = places[0]
    return Path(root), info


def find_wheel(
    text: str, python: str | None, console: Console, *, runs: bool = False, trust: bool = False
) -> tuple[Path, bool]:
    """Return the wheel that `text` means, and whether it was fetched for a requirement.

    Args:
        runs: something of it will run, so the index must give a hash of it; `trust` does without.

    Raises:
        UsageError: no such file, or no such wheel.
        RefusedForSafety: it will run, and the index gives no hash of it.
    """
    path = expanded(text)
    looks_like_a_path = "/" in text or path.suffix == ".whl"
    if path.exists() or looks_like_a_path:
        if python is not None:
            raise UsageError(f"--python {python}: {path} is a file, for the Python it was built for")
        return path, False
    from mps_build.common.wheels.download import fetch_wheel
    from mps_build.common.wheels.pip_call import limits_of_run

    cache = cache_folder()
    log = cache / "logs" / "fetch_wheel.log"
    limits = limits_of_run(trust=trust or not runs)
    fetched = fetch_wheel(text, python=python, cache=cache / "wheels", log=log, reporter=console, limits=limits)
    console.print(f"{'from the cache' if fetched.from_cache else 'fetched'}: {fetched.path}", style="dim")
    return fetched.path, True


def add_nightly_options(parser: argparse.ArgumentParser) -> None:
    """Add which nightly, and from where."""
    parser.add_argument(
        "--nightly", action="store_true", help="the newest pre-release of torch (never tried on the real index)"
    )
    parser.add_argument(
        "--index", metavar="DIR|ADDRESS", help=f"where nightlies are (default: {VARIABLE}, else pip's own index)"
    )


def chosen_nightly(
    target: str | None, *, nightly: bool, index: str | None, pythons: Iterable[str], platform: str | None
) -> tuple[str, str]:
    """Return the requirement of the newest pre-release and its Python; pip finds it from here on.

    Raises:
        UsageError: another torch is named as well, or the index has no pre-release.
        SourceError: the index cannot be reached.
    """
    if target is not None or not nightly:
        raise UsageError(
            "--index goes with --nightly" if not nightly else f"--nightly chooses the torch: leave {target} out",
            hint="--nightly --index ADDRESS",
        )
    from mps_build.common.wheels.download import pip_command
    from mps_build.common.wheels.pip_call import QUESTION

    where = nightly_index(index, os.environ)
    version, python = newest_nightly(
        "torch", pip=pip_command(QUESTION), pythons=pythons, platform=platform, index=where
    )
    # pip reads its settings from variables: whoever fetches in this process finds the nightly, and what it requires.
    os.environ.update(index_variables(where))
    return f"torch=={version}", python
