"""A Mac as far as Linux can be one without root: a Python that says darwin and arm64, Apple's tools on PATH.

The tool runs in that Python, so that it takes its native path: doctor, DEVELOPER_DIR, delocate and all. Compilers are
zig's, by --set; otool, lipo and install_name_tool are LLVM's; codesign, xcrun and the rest are small scripts.
"""

from __future__ import annotations

import os
import shlex
import shutil
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

from mps_build.common.process import Captured, Command, capture
from specimen_judge import specimens

SCRIPTS = Path(__file__).resolve().parents[3] / "scripts"
DEVELOPER_DIR = "/Applications/Xcode 26.5.app/Contents/Developer"
# What the interpreter itself says; packages that were imported before ask these names later.
_SITE = """
import collections, os, platform, sys, sysconfig
sysconfig.get_config_vars()  # the build machine has no file of a Mac's
sys.platform = "darwin"
_U = collections.namedtuple("uname_result", "sysname nodename release version machine")
_KERNEL = "Darwin Kernel Version 24.3.0: Thu Jan  2 20:24:16 PST 2025; root:xnu-11215.81.4~3/RELEASE_ARM64_T6031"
os.uname = lambda: _U("Darwin", "mac.local", "24.3.0", _KERNEL, "arm64")
platform.system = lambda: "Darwin"
platform.machine = lambda: "arm64"
platform.mac_ver = lambda *_: ("15.3", ("", "", ""), "arm64")
"""
# A module of CPython's own on a Mac; urllib.request imports it where sys.platform is darwin.
_PROXIES = """
def _get_proxy_settings(): return {}
def _get_proxies(): return {}
"""
_LLVM = {"otool": "llvm-otool", "lipo": "llvm-lipo", "install_name_tool": "llvm-install-name-tool"}


# Apple's otool takes -m (names are no archive members), LLVM's does not know it.
_DIALECT = {"otool": 'for word; do shift; [ "$word" = -m ] || set -- "$@" "$word"; done\n'}


@dataclass(frozen=True, slots=True, kw_only=True)
class ImitatedMac:
    """Where it lies: `calls` has a line for each call of a tool that delocate uses."""

    folder: Path
    python: Path
    tools: Path
    calls: Path

    def environ(self, **more: str) -> dict[str, str]:
        kept = {name: os.environ[name] for name in ("HOME", "MPS_BUILD_CACHE", "PIP_INDEX_URL") if name in os.environ}
        pip = {name: value for name, value in os.environ.items() if name.startswith("PIP_")}
        path = os.pathsep.join([str(self.tools), "/usr/bin", "/bin", "/usr/sbin", "/sbin"])
        return {**kept, **pip, "PATH": path, "MPS_BUILD_WORK": str(self.folder / "work"), **more}

    def run(self, command: str, *arguments: str, timeout_seconds: float = 600, **environ: str) -> Captured:
        """Run one command of the tool's, as `mps-build COMMAND ...` on a Mac."""
        argv = (str(self.python), "-m", "mps_build", command, *arguments)
        call = Command(argv=argv, cwd=self.folder, environ=self.environ(**environ))
        return capture(call, timeout_seconds=timeout_seconds)


def imitated_mac(folder: Path, *, packages: Path | None = None) -> ImitatedMac:
    """Make the Mac in a folder.

    Args:
        packages: a folder with delocate; None leaves it out, as a broken installation would.
    """
    folder.mkdir(parents=True, exist_ok=True)
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", str(folder / "python")], check=True)
    site = next((folder / "python" / "lib").glob("python*/site-packages"))
    ours = [path for path in sys.path if path.endswith("site-packages")]
    places = [str(SCRIPTS), *([str(packages)] if packages else []), *ours]
    (site / "mac.pth").write_text("".join(f"{place}\n" for place in places), encoding="utf-8")
    (site / "sitecustomize.py").write_text(_SITE, encoding="utf-8")
    (site / "_scproxy.py").write_text(_PROXIES, encoding="utf-8")
    mac = ImitatedMac(
        folder=folder, python=folder / "python" / "bin" / "python", tools=folder / "tools", calls=folder / "calls"
    )
    mac.tools.mkdir()
    mac.calls.touch()
    for name, body in {**_answers(), **_apple(mac.calls)}.items():
        (mac.tools / name).write_text(f"#!/bin/sh\n{body}\n", encoding="utf-8")
        (mac.tools / name).chmod(0o755)
    return mac


def llvm_tools() -> dict[str, str] | None:
    """Return LLVM's programs for Apple's names, or None where one is missing (Debian: apt install llvm)."""
    places = [*map(str, sorted(Path("/usr/lib").glob("llvm-*/bin"), reverse=True)), os.environ.get("PATH", "")]
    found = {name: shutil.which(llvm, path=os.pathsep.join(places)) for name, llvm in _LLVM.items()}
    return {name: path for name, path in found.items() if path} if all(found.values()) else None


def _answers() -> dict[str, str]:
    """Return the scripts that answer as an M3 Max's tools do, from its specimen."""
    row = next(row for row in specimens("hosts") if row["id"].startswith("m3max"))
    said = {shlex.join(probe["argv"]): str(probe["stdout"]) for probe in row["probes"]}
    profiler = {kind: said[f"system_profiler {kind}"] for kind in ("SPHardwareDataType", "SPDisplaysDataType")}
    hardware, displays = (shlex.quote(profiler[kind]) for kind in ("SPHardwareDataType", "SPDisplaysDataType"))
    scripts = {
        argv[0]: f"printf %s {shlex.quote(text)}"
        for words, text in said.items()
        if (argv := shlex.split(words))[0] in ("sw_vers", "sysctl", "uname", "launchctl")
    }
    return {
        **scripts,
        "system_profiler": f"case $1 in SPH*) printf %s {hardware} ;; *) printf %s {displays} ;; esac",
        "pmset": "echo 'Note: No thermal warning level has been recorded'",
        "notifyutil": "echo 'com.apple.system.thermalpressurelevel 0'",
        "mdfind": f"echo '{DEVELOPER_DIR.removesuffix('/Contents/Developer')}'",
        "pkgutil": "echo \"No receipt for '$1' found at '/'.\" >&2; exit 1",
    }


def _apple(calls: Path) -> dict[str, str]:
    """Return Apple's own tools: shims that take the Xcode of DEVELOPER_DIR, since none is chosen for the machine."""
    none = "xcode-select: error: unable to get active developer directory, use `sudo xcode-select --switch FOLDER`"
    shim = f"[ -n \"$DEVELOPER_DIR\" ] || {{ echo '{none}' >&2; exit 1; }}"
    noted = f'echo "$(basename "$0") $*" >> {shlex.quote(str(calls))}'
    llvm = llvm_tools() or {}
    return {
        "git": f'{shim}\nexec {shutil.which("git")} "$@"',
        "xcode-select": f"{shim}\nprintf '%s\\n' \"$DEVELOPER_DIR\"",
        "xcodebuild": f"{shim}\nprintf 'Xcode 26.5\\nBuild version 17F42\\n'",
        "xcrun": f'{shim}\ncase "$*" in *show-sdk-version) echo 26.5 ;;'
        " *metal*--version) echo 'Apple metal version 32023.883 (metalfe-32023.883)' ;; *metal*)"
        ' while [ "$#" -gt 1 ]; do [ "$1" != -o ] || : > "$2"; shift; done ;; esac',
        "codesign": f"{shim}\n{noted}",
        **{name: f'{shim}\n{noted}\n{_DIALECT.get(name, "")}exec {path} "$@"' for name, path in llvm.items()},
    }
