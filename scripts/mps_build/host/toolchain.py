"""An Xcode as the toolchain of a build: chosen by DEVELOPER_DIR, so that the machine stays as it is for others."""

from __future__ import annotations

import os

from mps_build.common.environment import Toolchain

from .host import Host


def xcode_toolchain(host: Host) -> Toolchain:
    """Return what the host's Xcode adds to the environment of a build.

    Compilers are named by their path: a bare `clang` may be Homebrew's
    (https://github.com/pytorch/executorch/issues/18340).
    """
    variables = {"CC": "/usr/bin/clang", "CXX": "/usr/bin/clang++"}
    reasons = dict.fromkeys(variables, "Apple's, by path: a bare name may be Homebrew's or conda's")
    if host.developer_dir is not None:
        variables["DEVELOPER_DIR"] = host.developer_dir
        reasons["DEVELOPER_DIR"] = "chooses the Xcode for this build alone"
    xcode = host.xcode
    facts = {
        "xcode": f"{xcode.version} {xcode.build or ''}".strip() if xcode else None,
        "sdk": host.sdk_version,
        "metal": host.metal_version,
    }
    return Toolchain(
        name="xcode",
        variables=variables,
        reasons=reasons,
        facts={name: value for name, value in facts.items() if value is not None},
    )


def use_xcode(host: Host) -> None:
    """Let every program that this process starts use the host's Xcode, as the compilers do.

    git, otool, install_name_tool and codesign in /usr/bin are shims, each of which asks for the chosen Xcode: with
    none chosen for the machine they fail, though `DEVELOPER_DIR` or /Applications names one.
    """
    if host.developer_dir is not None:
        os.environ["DEVELOPER_DIR"] = host.developer_dir
