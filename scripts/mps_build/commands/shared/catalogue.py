"""Every command, grouped by the five tasks; README, docs and `mps-build help` follow this order."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

TASKS: Mapping[str, Mapping[str, str]] = MappingProxyType(
    {
        "build a wheel": {
            "build_wheel": "build a recipe into an audited wheel",
            "build_companions": "build torchvision and torchaudio for a torch that was built here",
            "rehearse": "try a macOS recipe on Linux: patches, lock, configure, C++",
            "check_mm": "check Objective-C++ of MPS on any system: selectors, types, enums, version guards",
            "shell": "open a shell, or run one command, in the exact environment of a build",
            "lock": "pin the versions and hashes of each recipe's build requirements",
            "matrix": "list the recipes and their Pythons as JSON, for a workflow",
            "refresh_patches": "show which patches apply to a tree or a tag, are upstream already, or conflict",
            "build_report": "show where a build's time went, its critical path, and what would save most",
        },
        "inspect a wheel without running it on a Mac": {
            "audit_wheel": "check what a wheel, a requirement or an installed torch contains",
            "verify_kernels": "run a wheel's Metal kernels on this machine, without a Mac, and compare their results",
            "op_coverage": "list which operators MPS runs itself, through a composite, or not",
            "compare": "compare two wheels, or two records",
        },
        "verify a torch on a device": {
            "simulate": "run a program with an mps device on Linux, over a software Metal",
            "verify_mps": "test whether MPS on this Mac gives right answers",
            "verify_training": "test whether Accelerate and Transformers train as their pages promise",
            "benchmark_mps": "time training and inference on the device against the CPU",
            "bisect_mps": "find the version, and the commit, that changed an answer",
            "repro": "write one failure of a record as a script of its own, and as an issue's text",
        },
        "understand a host or a failure": {
            "doctor": "check this host, or a recorded one, against one recipe or all",
            "triage": "find the known cause of a failed log, and its fix",
            "adopt": "check a recording that a user sent, and file it among the tests",
            "support": "pack recording, receipts, logs and versions into one scrubbed file for an issue",
            "clean": "show disk usage of the work folder and the cache, and remove what is named",
        },
        "run a fleet and publish": {
            "plan_fleet": "estimate how long a number of Macs takes to build and test",
            "publish_index": "write a static package index of wheels, with hashes, receipts and attestations",
            "verify_provenance": "check a downloaded wheel against its receipt, its attestation and the recipe's pins",
            "ci": "answer what a workflow asks beside the sessions: trust, refs, outputs, upstream's commit, issues",
        },
        "keep this repository": {
            "regenerate": "write every generated file and table of this repository",
            "completion": "print a completion script for your shell",
        },
    }
)
COMMANDS: Mapping[str, str] = MappingProxyType(
    {name: summary for commands in TASKS.values() for name, summary in commands.items()}
)
