"""A failed log, or what a crashing MPS process wrote, to its known cause and the fix."""

from .diagnosis import Triage, explain
from .render import as_document, render

__all__ = ["Triage", "as_document", "explain", "render"]
