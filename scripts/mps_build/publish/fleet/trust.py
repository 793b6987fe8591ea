"""Who may use a Mac of the fleet, and which commits may be built there: lists of what is allowed, nothing else."""

from __future__ import annotations

import re
from collections.abc import Mapping

from mps_build.common.errors import HostError, UsageError
from mps_build.common.json_text import parse_json

# Events that only somebody with write access can cause. runner/hooks/job-started.sh holds the same list (a test
# compares them): there no pull request can change it.
TRUSTED_EVENTS = ("push", "release", "schedule", "workflow_dispatch")
_REFS = re.compile(r"[0-9a-f]{40}|v\d+\.\d+\.\d+(-rc\d+)?|nightly|viable/strict|main|release/\d+\.\d+")
_LABEL = re.compile(r"[A-Za-z0-9_.-]{1,64}")


def check_trust(environ: Mapping[str, str]) -> str:
    """Return the event's name, if this job may run on a Mac.

    Raises:
        HostError: an event that a stranger can cause, or a repository that this Mac does not serve.
    """
    event, repository = environ.get("GITHUB_EVENT_NAME", ""), environ.get("GITHUB_REPOSITORY", "")
    if event not in TRUSTED_EVENTS:
        raise HostError(
            f"the event {event or '(none)'!r} may not use a Mac",
            hint=f"only {', '.join(TRUSTED_EVENTS)} may: code from forks and pull requests must not run there",
        )
    served = environ.get("MPS_BUILD_REPOSITORIES", "").replace(",", " ").split()
    if not served or repository not in served:
        raise HostError(
            f"this Mac does not serve {repository or '(no repository)'}",
            hint="MPS_BUILD_REPOSITORIES in the runner's .env names those that it serves: runner/setup.sh",
        )
    return event


def check_ref(ref: str) -> str:
    """Return a ref that may be built: a commit, a release's tag, or a branch that upstream protects.

    Raises:
        UsageError: any other, a fork's pull request for instance (refs/pull/1/head).
    """
    if not _REFS.fullmatch(ref):
        raise UsageError(
            f"the ref {ref!r} is not on the list of what may be built here",
            hint="a 40-hex commit, v2.15.0, v2.16.0-rc1, nightly, viable/strict, main, or release/2.16",
        )
    return ref


def check_labels(text: str, *, bare_metal: bool = False) -> list[str]:
    """Return the labels of a runner from their JSON.

    Raises:
        UsageError: no JSON list of labels, or not of a self-hosted Mac.
    """
    try:
        labels = parse_json(text)
    except ValueError as error:
        raise UsageError(f"runner labels {text!r} are not JSON: {error}", hint='["self-hosted","macOS"]') from error
    if not isinstance(labels, list) or not all(isinstance(each, str) and _LABEL.fullmatch(each) for each in labels):
        raise UsageError(f"runner labels {text!r} are not JSON list of words", hint='["self-hosted","macOS"]')
    if "self-hosted" not in labels:
        what = (
            "a hosted Mac is a virtual machine: no verdict on MPS can be had from it"
            if bare_metal
            else "it is open to all"
        )
        raise UsageError(f"runner labels {text} lack self-hosted: {what}", hint='["self-hosted","macOS","ARM64"]')
    return labels
