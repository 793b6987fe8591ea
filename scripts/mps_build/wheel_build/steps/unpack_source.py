"""Release tarball -> source tree: the asset that a release carries, submodules included."""

from __future__ import annotations

import shutil
import tarfile
from pathlib import Path

from mps_build.common.errors import SourceError
from mps_build.common.reporter import Reporter
from mps_build.common.workspace import remove_tree


def unpack_source(tarball: Path, *, destination: Path, reporter: Reporter) -> int:
    """Unpack into `destination` (made anew) and return the newest time stamp in it, in seconds since 1970.

    Raises:
        SourceError: it is not a tarball, is cut off, holds more or less than one folder, or a member
            that would leave that folder.
    """
    reporter.started(f"Unpack {tarball.name}", unit="files")
    remove_tree(destination)
    beside = destination.with_name(f".{destination.name}.unpacking")
    shutil.rmtree(beside, ignore_errors=True)
    newest = 0
    try:
        with tarfile.open(tarball) as archive:
            for count, member in enumerate(archive, 1):
                archive.extract(member, beside, filter="data")
                newest = max(newest, int(member.mtime))
                reporter.advanced(count)
    except (tarfile.TarError, EOFError, OSError) as error:
        if isinstance(error, OSError) and error.errno is not None:
            raise  # the disk's fault, not the tarball's
        raise SourceError(f"{tarball} cannot be unpacked: {error}", hint="download it again") from error
    tops = list(beside.iterdir()) if beside.is_dir() else []
    if len(tops) != 1 or not tops[0].is_dir():
        raise SourceError(
            f"{tarball} holds {len(tops)} entries at its top instead of one folder",
            hint="use the release's own asset (pytorch-vX.Y.Z.tar.gz), which has the submodules",
        )
    tops[0].replace(destination)
    beside.rmdir()
    reporter.done()
    return newest
