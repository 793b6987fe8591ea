"""What a wheel holds (facts), what it should hold (rules), and the verdict."""

from .model import Audit, Expectation, Finding
from .verdict import audit_installed, audit_wheel

__all__ = ["Audit", "Expectation", "Finding", "audit_installed", "audit_wheel"]
