"""Why a wheel of a rehearsal differs from the official one: each reason is a fact of how it was configured or compiled."""

from __future__ import annotations

from .differences import Reason

REASONS: tuple[Reason, ...] = ()
