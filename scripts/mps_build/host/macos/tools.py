"""What the helpers of a build say: git, caches, the count of cores, variables and headers that could leak in."""

from __future__ import annotations

import re

from .answers import Answer, Facts, first
from .diagnosis import noise_in


def parse_tool_version(answer: Answer, tool: str) -> Facts:
    """Return `{tool: version}`, or None as its version where there is no such program."""
    if noise_in(answer):
        return {}  # what stands beside it matters more
    if answer.exit == 127 or re.search(r"command not found|No such file or directory", answer.text):
        return {tool: None}
    version = first(rf"^\s*{tool}\s+(?:version\s+)?v?(\d+(?:\.\d+)+)", answer.text)
    return {tool: version} if version else {}


def parse_nproc(answer: Answer) -> Facts:
    """Read `nproc` (or `getconf`): the number of cores."""
    return {"cpu_cores": int(answer.last_line)} if answer.last_line.isdecimal() else {}


def parse_linux_kernel(answer: Answer) -> Facts:
    """Read `uname -a` of a Linux host: all we need is that it is one, and its architecture."""
    match = re.search(r"^Linux\s.*?\b(x86_64|aarch64|arm64|i686|riscv64|ppc64le)\b", answer.stdout, re.MULTILINE)
    return {"system": "Linux", "arch": match.group(1)} if match else {}


def parse_leaks(answer: Answer) -> Facts:
    """Read our own listing of variables (probe_table.LEAKS); without its last line it is not whole."""
    if "variables: all listed" not in answer.stdout:
        return {}
    return {
        "variables": re.findall(r"^\s*set: (\w+)\s*$", answer.stdout, re.MULTILINE),
        "semicolons": re.findall(r"^\s*semicolon: (\w+)\s*$", answer.stdout, re.MULTILINE),
    }


def parse_header_folders(answer: Answer) -> Facts:
    """Read the listing of folders whose headers a compiler takes by itself."""
    return {"header_folders": re.findall(r"^\s*(/\S*/include)/?\s*$", answer.stdout, re.MULTILINE)}
