"""Installs nox into the job's own folder, by hash, and puts it on the PATH of the steps that follow."""

import os
import subprocess
import sys
from pathlib import Path

here = Path(__file__).resolve().parent
venv = Path(os.environ["RUNNER_TEMP"]) / "nox"
subprocess.run([sys.executable, "-m", "venv", str(venv)], check=True)
pip = [str(venv / "bin" / "python"), "-m", "pip", "install", "--quiet", "--disable-pip-version-check"]
subprocess.run([*pip, "--require-hashes", "--only-binary", ":all:", "-r", str(here / "requirements.txt")], check=True)
with Path(os.environ["GITHUB_PATH"]).open("a", encoding="utf-8") as paths:
    paths.write(f"{venv / 'bin'}\n")
