"""What GitHub shows of a job: the Markdown of its summary."""

from __future__ import annotations

import os
from pathlib import Path

from .plain_text import plain
from .scrubbing.scrubber import without_secrets


def job_summary(text: str) -> None:
    """Append Markdown to the summary that GitHub shows of this job; outside of GitHub nothing is written."""
    if path := os.environ.get("GITHUB_STEP_SUMMARY"):
        with Path(path).open("a", encoding="utf-8") as file:
            file.write(without_secrets(plain(text)))
