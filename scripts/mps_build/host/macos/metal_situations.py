"""What goes wrong with the Metal compiler and its component.

In the order in which they win when several match; specimens of each: tests/recorded/specimens/xcode.yaml.
"""

from __future__ import annotations

from .situation import CHOOSE_XCODE, DOWNLOAD_METAL, GITHUB, Situation

METAL: tuple[Situation, ...] = (
    Situation(
        id="metal_toolchain_missing",
        phrases=("due to missing Metal Toolchain",),
        means="Xcode 26 and newer bring the Metal compiler as a component of its own, and it is not there",
        mend=DOWNLOAD_METAL,
        link=f"{GITHUB}/actions/runner-images/issues/13094",
        details={"tool": r"execute\s+tool\s+'([^'\n]+)'"},
    ),
    Situation(
        id="metal_utility_not_found",
        phrases=('unable to find utility "metal', "can't exec 'metal'"),
        means="there is no Metal compiler under the chosen developer directory",
        mend=f"{CHOOSE_XCODE}; with Xcode 26 and newer also: {DOWNLOAD_METAL}",
        link=f"{GITHUB}/zed-industries/zed/issues/7948",
        details={"tool": r"(?:find\s+utility\s+\"|can't\s+exec\s+')(metal[\w-]*)"},
    ),
    Situation(
        id="metal_catalog_failed",
        phrases=("Failed fetching catalog for assetType (com.apple.MobileAsset.MetalToolchain)",),
        means="Apple's catalogue has no Metal Toolchain for this build of Xcode (or this is a virtual machine)",
        mend=f"{DOWNLOAD_METAL} -buildVersion <the nearest build that has one>; on a virtual machine try again first",
        link=f"{GITHUB}/tuist/tuist/pull/13312",
        details={"requested_build": r"RequestedBuild\s*=\s*\"?(\w+)\"?\s*;"},
    ),
    Situation(
        id="mobileassetd_starting_up",
        phrases=("mobileassetd was starting up",),
        means="the download service has not started yet; it passes",
        mend=f"the same command again after a minute: {DOWNLOAD_METAL}",
        link=f"{GITHUB}/actions/runner-images/issues/13094",
        fixed={"transient": True},
    ),
    Situation(
        id="xcodebuild_invalid_option",
        phrases=("xcodebuild: error: invalid option '",),
        means="this Xcode does not know the option; before Xcode 26 the Metal compiler lies inside Xcode.app",
        mend="leave the download out with this Xcode, and prove the compiler: xcrun --sdk macosx metal --version",
        link=f"{GITHUB}/actions/runner-images/issues/13094",
        details={"argument": r"invalid\s+option\s+'([^'\n]+)'"},
    ),
    Situation(
        id="metal_language_standard",
        phrases=("requires Metal language standard",),
        means="the Metal compiler works; the call lacks a language standard",
        mend="pass -std=macos-metal2.3 (or higher) to metal",
        link=f"{GITHUB}/EricLBuehler/mistral.rs/issues/1844",
        details={"wanted": r"Metal\s+language\s+standard\s+([\w.-]*\w)"},
    ),
    Situation(
        id="metal4_headers_too_old",
        phrases=("_input_cooperative_tensor' in",),
        means="the SDK compiles Metal 4, but its headers lack members that PyTorch uses (Xcode 26.0 and 26.1)",
        mend="build with a newer Xcode than 26.1, or a PyTorch with pull request 195302",
        link=f"{GITHUB}/pytorch/pytorch/issues/194946",
        details={"symbol": r"'(\w+_input_cooperative_tensor)'\s+in"},
    ),
    Situation(
        id="metal_asset_already_installed",
        phrases=("Asset is already installed for Metal Toolchain",),
        means="the wished-for state is there; it is proved by compiling",
        mend=None,
        link=f"{GITHUB}/ungoogled-software/ungoogled-chromium-macos/pull/283",
        details={"build": r"for\s+Metal\s+Toolchain\s+(\w+)"},
        fatal=False,
    ),
    Situation(
        id="metal_download_stalled",
        phrases=(),  # no words of its own: the download began, and our time limit ended it
        means="the download of the Metal Toolchain did not end",
        mend="copy Metal.xctoolchain out of a MetalToolchain .dmg to ~/Library/Developer/Toolchains, or try later",
        link=f"{GITHUB}/actions/runner-images/issues/13094",
    ),
)
