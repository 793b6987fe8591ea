"""From a torch to a verdict: the target, the diagnosis, the suite, the record; what `verify_mps` and others call."""

from .verification import Verification, run
from .verify_request import VerifyRequest

__all__ = ["Verification", "VerifyRequest", "run"]
