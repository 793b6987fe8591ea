"""`--nightly` and `--index`: the newest pre-release of torch, from an index that is given or configured."""

from __future__ import annotations

import argparse
import os
from collections.abc import Iterable

from mps_build.common.errors import UsageError
from mps_build.common.wheels.nightly import VARIABLE, index_variables, newest_nightly, nightly_index


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
        SourceError: the index cannot be asked.
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
