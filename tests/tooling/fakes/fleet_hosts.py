"""Hosts of a fleet: a folder as a Mac with a registered runner, and a program that is a build host."""

from __future__ import annotations

import json
import os
import shutil
import sys
from dataclasses import asdict
from pathlib import Path

from mps_build.common.process import Captured, Command, capture
from mps_build.wheel_build.compiler_cache.launcher import cache_counts
from mps_build.wheel_build.compiler_cache.store import choose_store, relayed

RUNNER = Path(__file__).parents[3] / "runner"
SCRIPTS = sorted(RUNNER.rglob("*.sh"))


_FAKES = {
    "uname": "echo Darwin",
    "id": "echo 0",
    "stat": "echo builder",
    "pmset": 'echo "pmset $*" >> "$CALLS"',
    "mdutil": 'echo "mdutil $*" >> "$CALLS"; exit 1',
    "plutil": 'echo "plutil $*" >> "$CALLS"',
    "launchctl": 'echo "launchctl $*" >> "$CALLS"; [ "$1" != bootout ]',
    "chown": 'echo "chown $*" >> "$CALLS"',
}


class Mac:
    """A folder that stands for a Mac: tools that note how they are called, and a registered runner."""

    bash: tuple[str, ...] = ("bash",)

    def __init__(self, folder: Path) -> None:
        self.root, self.tools, self.calls = folder / "root", folder / "bin", folder / "calls"
        self.runner = folder / "actions runner & co"
        for place in (self.root, self.tools, self.runner):
            place.mkdir()
        self.calls.touch()
        for name, body in _FAKES.items():
            self.tool(name, body)
        self.tool("df", 'echo "Filesystem 1024-blocks Used Available"; echo "/dev/disk 9 9 ${FREE_KB:-99999999} 1% /x"')
        (self.runner / "run.sh").write_text("#!/bin/sh\n", encoding="utf-8")
        (self.runner / "run.sh").chmod(0o755)
        (self.runner / ".runner").write_text("{}", encoding="utf-8")
        (self.runner / ".env").write_text("LANG=C\n", encoding="utf-8")

    def tool(self, name: str, body: str) -> None:
        path = self.tools / name
        path.write_text(f"#!/bin/sh\n{body}\n", encoding="utf-8")
        path.chmod(0o755)

    def run(self, script: str | Path, *arguments: str, **environ: str) -> Captured:
        whole = {
            "PATH": f"{self.tools}:{os.environ['PATH']}",
            "CALLS": str(self.calls),
            "MPS_BUILD_SETUP_ROOT": str(self.root),
            # macOS has bash 3.2; the bash that is here behaves as that one where its behaviour changed.
            "BASH_COMPAT": "3.2",
        }
        return capture(Command(argv=(*self.bash, str(RUNNER / script), *arguments), environ=whole | environ))

    def install(self) -> Captured:
        return self.run("setup.sh", "install", "--url", "https://github.com/owner/wheels", "--runner", str(self.runner))

    def files(self) -> dict[str, bytes]:
        folders = (self.root, self.runner)
        return {str(path): path.read_bytes() for each in folders for path in each.rglob("*") if path.is_file()}


def main(folder: Path, home: Path, address: str) -> None:
    sccache, compiler = Path(shutil.which("sccache") or ""), shutil.which("cc") or ""
    choice = choose_store({"MPS_BUILD_SHARED_CACHE": address}, shared=True)
    said = list(choice.warnings)
    with relayed(choice.variables, choice.upstream, sccache, report=said.append) as variables:
        base = {"PATH": os.environ["PATH"], "HOME": str(home), "SCCACHE_DIR": str(home / "cache")}
        environ = {**base, **variables}
        failed = []
        for path in sorted(folder.glob("*.c")):
            argv = (str(sccache), compiler, "-O1", "-c", str(path), "-o", str(path.with_suffix(".o")))
            if not capture(Command(argv=argv, environ=environ), timeout_seconds=90).ok:
                failed.append(path.name)
        counts = cache_counts(sccache, environ)
    print(json.dumps({"failed": failed, "reported": said, **(asdict(counts) if counts else {})}))


if __name__ == "__main__":
    main(Path(sys.argv[1]), Path(sys.argv[2]), sys.argv[3])
