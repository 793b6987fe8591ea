"""From a torch to a verdict: the target, the diagnosis, the suite, the record; what `verify_mps` and others call."""

from .request import VerifyRequest
from .verification import Verification

__all__ = ["Verification", "VerifyRequest"]
