"""One thing that goes wrong with Apple's developer tools, known by its words."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

CHOOSE_XCODE = "sudo xcode-select -s /Applications/Xcode.app/Contents/Developer"
DOWNLOAD_METAL = "xcodebuild -downloadComponent MetalToolchain"
INSTALL_CLT = "xcode-select --install"
FIRST_LAUNCH = "sudo xcodebuild -runFirstLaunch"
ACCEPT_LICENSE = "sudo xcodebuild -license accept"
GITHUB = "https://github.com"


@dataclass(frozen=True, slots=True, kw_only=True)
class Situation:
    """What is said, what it means, what mends it.

    `phrases` are matched with all white space taken out of both sides; `needs` is a pattern
    that must match besides. `details` are patterns whose first group is the value of that
    key; `fixed` are keys that always hold. `fatal` is False where the work goes on.
    """

    id: str
    phrases: tuple[str, ...]
    means: str
    mend: str | None
    link: str
    needs: str | None = None
    details: Mapping[str, str] = field(default_factory=dict)
    fixed: Mapping[str, object] = field(default_factory=dict)
    fatal: bool = True
