"""What marks a wheel that was never near a Mac: its bill of materials and its receipt, beside its version."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

STATEMENT = (
    "a rehearsal: compiled and linked on Linux against declarations and stubs of Apple's frameworks; "
    "never loaded, run or verified on a Mac; not to be published or installed"
)


def marked_bill(bill: Mapping[str, Any], stand_ins: Mapping[str, Sequence[str]]) -> dict[str, Any]:
    """Return a bill of materials that says it is of a rehearsal, with the libraries that are stand-ins.

    Args:
        stand_ins: library -> the names that trap when they are called.
    """
    metadata = dict(bill["metadata"])
    subject = dict(metadata["component"])
    subject["properties"] = [*subject.get("properties", ()), {"name": "mps-build:rehearsal", "value": STATEMENT}]
    metadata["component"] = subject
    components = [
        *bill["components"],
        *(
            {
                "type": "library",
                "name": library,
                "version": "stand-in",
                "bom-ref": f"stand-in:{library}",
                "description": f"{len(names)} names trap when they are called",
            }
            for library, names in sorted(stand_ins.items())
        ),
    ]
    depends = [{"ref": bill["dependencies"][0]["ref"], "dependsOn": [each["bom-ref"] for each in components]}]
    return {**bill, "metadata": metadata, "components": components, "dependencies": depends}
