"""Tables of forms: one case asks each form, and what each answers or refuses is compared."""

from __future__ import annotations

from typing import Any

from .answers import attempt

ONCE = ("fresh",)


def each(forms: dict[str, Any], *operands: Any) -> Any:
    """Return what each form answers, or the kind of its refusal."""
    return {name: attempt(lambda form=form: form(*operands)) for name, form in forms.items()}
