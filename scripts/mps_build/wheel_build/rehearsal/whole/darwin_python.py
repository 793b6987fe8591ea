"""A Python that says it is a Mac's: what setup.py asks of its interpreter, answered for macOS arm64.

setup.py of the setuptools era looks at the host for what it builds for: `sys.platform`, `os.uname()`, the suffix of
extension modules, the compiler that made Python. CPython has its own way for a cross build (a `_sysconfigdata` module
by `_PYTHON_SYSCONFIGDATA_NAME`); the rest is a `sitecustomize`.
"""

from __future__ import annotations

import plistlib
from pathlib import Path

from mps_build.common.files import write_whole

MODULE = "_mps_build_sysconfigdata"
_SITE = """\
# Written by mps-build: this interpreter builds for macOS arm64, and answers as one that runs there.
import os
import sys
import types

if os.environ.get("MPS_BUILD_AS_DARWIN"):
    sys.platform = "darwin"
    os.uname = lambda: os.uname_result(("Darwin", "rehearsal", {darwin!r}, "Darwin Kernel", "arm64"))
    # urllib.request asks it for proxies; those of the environment are used all the same.
    proxies = types.ModuleType("_scproxy")
    proxies._get_proxies = dict
    proxies._get_proxy_settings = dict
    sys.modules["_scproxy"] = proxies
"""
_DATA = """\
# Written by mps-build: what a Mac's Python says about its own build, over this host's.
import importlib
import sys

host = importlib.import_module(f"_sysconfigdata__linux_{{sys.implementation._multiarch}}")
tag = f"cpython-{{sys.version_info[0]}}{{sys.version_info[1]}}-darwin"
build_time_vars = {{
    **host.build_time_vars,
    "AR": {tools!r} + "/ar",
    "BLDSHARED": {tools!r} + "/cc -bundle -undefined dynamic_lookup",
    "CC": {tools!r} + "/cc",
    "CCSHARED": "",
    "CFLAGS": "-fno-strict-overflow -DNDEBUG -O0",
    "CPPFLAGS": "",
    "CXX": {tools!r} + "/c++",
    "EXT_SUFFIX": f".{{tag}}.so",
    "LDCXXSHARED": {tools!r} + "/c++ -bundle -undefined dynamic_lookup",
    "LDFLAGS": "",
    "LDSHARED": {tools!r} + "/cc -bundle -undefined dynamic_lookup",
    "MACOSX_DEPLOYMENT_TARGET": {target!r},
    "MULTIARCH": "darwin",
    "OPT": "",
    "PY_CFLAGS": "",
    "PY_CORE_CFLAGS": "",
    "SHLIB_SUFFIX": ".so",
    "SOABI": tag,
}}
"""


def write_darwin_python(
    folder: Path, *, tools: Path, target: str, darwin: str, system: Path, macos: str
) -> dict[str, str]:
    """Write the two modules to `folder` and macOS's own version file below `system`; return the variables for it.

    Args:
        tools: the folder of `cc` and `c++`.
        target: the deployment target, as 13.0.
        darwin: the kernel's version, as 22.0.0.
        system: what is seen as /System.
        macos: the version that this macOS claims, as 14.5.
    """
    write_whole(folder / "sitecustomize.py", _SITE.format(darwin=darwin))
    write_whole(folder / f"{MODULE}.py", _DATA.format(tools=str(tools), target=target))
    told = plistlib.dumps({"ProductName": "macOS", "ProductVersion": macos, "ProductBuildVersion": "rehearsal"})
    write_whole(system / "Library" / "CoreServices" / "SystemVersion.plist", told.decode())
    return {
        "MPS_BUILD_AS_DARWIN": "1",
        "_PYTHON_SYSCONFIGDATA_NAME": MODULE,
        "_PYTHON_HOST_PLATFORM": f"macosx-{target}-arm64",
        "MACOSX_DEPLOYMENT_TARGET": target,
    }
