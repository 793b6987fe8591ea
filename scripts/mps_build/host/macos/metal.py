"""What the Metal compiler and its component say."""

from __future__ import annotations

import re

from .answers import Answer, Facts, first
from .xcode import whereabouts

# What our own probe prints behind each language standard that compiled (probe_table.METAL_PROOF).
_USELESS = frozenset({"uninstalled", "notInstalled", "installedUpdateAvailable"})
PROOF_MARK = "mps-build compiled"


def parse_metal_version(answer: Answer) -> Facts:
    """Read `metal --version` (stdout) or `metal -v` (stderr); only a compiler that runs prints this."""
    match = re.search(r"Apple (?:metal|LLVM) version ([\d.]*\d) \(metalfe-([\d.]*\d)\)", answer.text)
    if not match:
        return {}
    facts: Facts = {"metal_version": match.group(1), "metalfe": match.group(2)}
    if target := first(r"^\s*Target:\s*(\S+)\s*$", answer.text):
        facts["target"] = target
    if installed := first(r"^\s*InstalledDir:\s*(/.*\S)\s*$", answer.text):
        facts |= whereabouts(installed)
    return facts


def parse_metallib_version(answer: Answer) -> Facts:
    """Read `metallib --version`: the linker's and the front end's version."""
    match = re.search(r"AIR-LLD ([\d.]*\d) \(metalfe-([\d.]*\d)\)", answer.text)
    return {"metallib_version": match.group(1), "metalfe": match.group(2)} if match else {}


def parse_component(answer: Answer) -> Facts:
    """Read `-showComponent MetalToolchain`: a status proves no compiler, but some disprove one."""
    status = first(r"^\s*Status:\s*(\w+)\s*$", answer.text)
    if not status:
        return {}
    facts: Facts = {"status": status, "usable": False if status in _USELESS else None}
    if build := first(r"^\s*Build Version:\s*(\w+)\s*$", answer.text):
        facts["build"] = build
    if identifier := first(r"^\s*Toolchain Identifier:\s*(\S+)\s*$", answer.text):
        facts["toolchain_identifier"] = identifier
    if mount := first(r"MetalToolchain-v(\d+(?:\.\d+)*)\.", answer.text):
        facts["mount_version"] = mount
    if status == "uninstalled":
        facts["error"] = "metal_toolchain_missing"
    return facts


def parse_component_download(answer: Answer) -> Facts:
    """Read `-downloadComponent`: "Done downloading" does not prove a compiler; our own time limit is not an answer."""
    if match := re.search(r"Done downloading: Metal Toolchain (\w+)", answer.text):
        return {"done": True, "build": match.group(1)}
    began = "Beginning asset download" in answer.text
    if answer.exit in (124, 137) and began:
        return {"done": False, "error": "metal_download_stalled"}
    return {}


def parse_metal_proof(answer: Answer) -> Facts:
    """Return the language standards that compiled in our own probe; none only if the compiler itself refused them."""
    standards = re.findall(rf"^\s*{PROOF_MARK} metal(\d\.\d)\s*$", answer.stdout, re.MULTILINE)
    refused = re.search(r"invalid value 'metal\d\.\d' in '-std=", answer.text)
    return {"metal_standards": standards} if standards or refused else {}
