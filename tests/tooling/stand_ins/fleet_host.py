"""One build host of test_fleet_sccache, as a program: compiles a folder with the shared store, tells the counts."""

from __future__ import annotations

import json
import os
import shutil
import sys
from dataclasses import asdict
from pathlib import Path

from mps_build.common.process import Command, capture
from mps_build.wheel_build.compiler_cache.launcher import cache_counts
from mps_build.wheel_build.compiler_cache.store import choose_store, relayed


def main(folder: Path, home: Path, address: str) -> None:
    sccache, compiler = Path(shutil.which("sccache") or ""), shutil.which("cc") or ""
    choice = choose_store({"MPS_BUILD_SHARED_CACHE": address}, shared=True)
    told = list(choice.warnings)
    with relayed(choice.variables, choice.upstream, sccache, report=told.append) as variables:
        base = {"PATH": os.environ["PATH"], "HOME": str(home), "SCCACHE_DIR": str(home / "cache")}
        environ = {**base, **variables}
        failed = []
        for path in sorted(folder.glob("*.c")):
            argv = (str(sccache), compiler, "-O1", "-c", str(path), "-o", str(path.with_suffix(".o")))
            if not capture(Command(argv=argv, environ=environ), timeout_seconds=90).ok:
                failed.append(path.name)
        counts = cache_counts(sccache, environ)
    print(json.dumps({"failed": failed, "told": told, **(asdict(counts) if counts else {})}))


if __name__ == "__main__":
    main(Path(sys.argv[1]), Path(sys.argv[2]), sys.argv[3])
