"""Why a rehearsal's wheel differs from the official one: facts of how it was configured, compiled and linked."""

from __future__ import annotations

from .differences import Reason

REASONS: tuple[Reason, ...] = ()
