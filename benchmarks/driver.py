"""What the driver itself costs: over the bare build commands, with nothing to do, and the doctor's time.

    nox -s benchmark -- driver

Wall seconds on the sample, medians; bare and driven runs alternate, so that a busy machine slows both.
"""

from __future__ import annotations

import json
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from shared.record import record

SCRIPTS = Path(__file__).parents[1] / "scripts"
COMMAND = "nox -s benchmark -- driver"
RUNS = 5


def main() -> None:
    with tempfile.TemporaryDirectory() as folder:
        work = Path(folder)
        environ = {**os.environ, "MPS_BUILD_WORK": str(work)}
        build = ["sample", "--wheelhouse", str(work / "wheelhouse")]
        _run("build_wheel", *build, environ=environ)
        answer = work / "shell.json"
        _run("shell", "sample", "--json", str(answer), "--", "true", environ=environ)
        bare = json.loads(answer.read_text(encoding="utf-8"))
        driven, plain = [], []
        for _ in range(RUNS):
            plain.append(_bare(bare, work / "sample"))
            _forget(work / "sample")
            driven.append(_run("build_wheel", *build, environ=environ))
        noop = [_run("build_wheel", *build, environ=environ) for _ in range(RUNS)]
    overhead = statistics.median(driven) - statistics.median(plain)
    spread = [one - other for one, other in zip(sorted(driven), sorted(plain), strict=True)]
    print(record("driver.overhead_s", [overhead, *spread], unit="s", command=COMMAND, target="<= 2"))
    print(record("driver.noop_s", noop, unit="s", command=COMMAND, target="<= 3"))
    doctor = [_run("doctor", "v2.6.0", environ=dict(os.environ), statuses=(0, 3)) for _ in range(RUNS)]
    print(record("doctor.s", doctor, unit="s", command=COMMAND, target="<= 2"))


def _run(command: str, *arguments: str, environ: dict[str, str], statuses: tuple[int, ...] = (0,)) -> float:
    """Run a command and return its wall seconds."""
    began = time.perf_counter()
    argv = [sys.executable, "-m", "mps_build", command, *arguments]
    ran = subprocess.run(argv, env=environ, capture_output=True, text=True, check=False)
    seconds = time.perf_counter() - began
    if ran.returncode not in statuses:
        raise SystemExit(f"{command} ended with {ran.returncode}:\n{ran.stdout}{ran.stderr}")
    return seconds


def _bare(shell: dict[str, object], tree: Path) -> float:
    """Configure and build in an empty folder as a person would type it, in the same environment."""
    build, dist = tree / "bare-build", tree / "bare-dist"
    for folder in (build, dist):
        shutil.rmtree(folder, ignore_errors=True)
    environ = {str(name): str(value) for name, value in dict(shell["environment"]).items()}  # type: ignore[call-overload]
    python = str(Path(environ["VIRTUAL_ENV"]) / "bin" / "python")
    source = str(shell["cwd"])
    toolchain = (
        f"-DCMAKE_TOOLCHAIN_FILE={environ['CMAKE_TOOLCHAIN_FILE']}" if "CMAKE_TOOLCHAIN_FILE" in environ else "-DA=B"
    )
    configure = ["cmake", "-GNinja", "-S", source, "-B", str(build), "-DCMAKE_BUILD_TYPE=Release", toolchain]
    pack = [python, "-m", "build", "--wheel", "--no-isolation", f"-Cbuild-dir={build}", "--outdir", str(dist), source]
    began = time.perf_counter()
    for argv in (configure, pack):
        subprocess.run(argv, env=environ, cwd=source, check=True, capture_output=True)
    return time.perf_counter() - began


def _forget(tree: Path) -> None:
    """Take away what configure and all later steps made."""
    for name in ("build", "compiled", "finished"):
        shutil.rmtree(tree / name)
    for step in ("configure", "compile_wheel", "finish_wheel", "audit_wheel", "deliver_wheel"):
        for receipt in (tree / "receipts").glob(f"{step}*.json"):
            receipt.unlink()


if __name__ == "__main__":
    main()
