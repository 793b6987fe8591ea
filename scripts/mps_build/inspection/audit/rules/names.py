"""N and T: everything that names the wheel says the same, and says what it is for."""

from __future__ import annotations

import re
from collections.abc import Iterator

from mps_build.common.wheels.naming import count_tags, expand_tag, is_same_version, normalise

from ...limits import MOST_TAGS
from ..macho import format_version
from ..model import WheelFacts
from ..releases import Wanted
from .rule import Hit, rule

_EXTENSION = re.compile(r"torch/_C\.(?:cpython-(\d)(\d+)(t?)-darwin|(abi3))\.so")


@rule("N1", of_archive=True)
def file_name_is_a_wheel_name(facts: WheelFacts, _: Wanted) -> Iterator[Hit]:
    """installers take distribution, version and tags from the file name"""
    if facts.name is None and not facts.is_installed:
        yield Hit(None, f"{facts.file} is not distribution-version(-build)-python-abi-platform.whl")


@rule("N2")
def info_folder_agrees(facts: WheelFacts, _: Wanted) -> Iterator[Hit]:
    """the .dist-info folder must carry the same distribution and version as the file name"""
    if len(facts.info_folders) != 1:
        yield Hit(None, f"{len(facts.info_folders)} .dist-info folders: {', '.join(facts.info_folders) or 'none'}")
    elif facts.name:
        distribution, _dash, version = facts.info_folders[0].removesuffix(".dist-info").rpartition("-")
        is_same = normalise(distribution) == normalise(facts.name.distribution)
        if not is_same or not is_same_version(version, facts.name.version):
            yield Hit(facts.info_folders[0], f"the file name says {facts.name.distribution} {facts.name.version}")


@rule("N3")
def metadata_agrees(facts: WheelFacts, _: Wanted) -> Iterator[Hit]:
    """METADATA must name the same distribution and version as the file name"""
    member = f"{facts.info_folders[0]}/METADATA" if facts.info_folders else None
    for key, wanted in (
        ("name", facts.name and facts.name.distribution),
        ("version", facts.name and facts.name.version),
    ):
        values = facts.metadata.get(key, ())
        if len(values) != 1:
            yield Hit(member, f"has {len(values)} lines {key.title()}")
        elif wanted:
            same = is_same_version(values[0], wanted) if key == "version" else normalise(values[0]) == normalise(wanted)
            if not same:
                yield Hit(member, f"{key.title()}: {values[0]}; the file name says {wanted}")


@rule("N5")
def demands_are_exact(facts: WheelFacts, wanted: Wanted) -> Iterator[Hit]:
    """without that exact demand pip puts another build of it under C++ that was compiled for this one"""
    member = f"{facts.info_folders[0]}/METADATA" if facts.info_folders else None
    lines = [re.sub(r"[\s()]", "", line) for line in facts.metadata.get("requires-dist", ())]
    for demand in wanted.requires:
        name = normalise(re.split(r"[^A-Za-z0-9._-]", demand)[0])
        of_it = [line for line in lines if normalise(re.split(r"[^A-Za-z0-9._-]", line)[0]) == name]
        if of_it != [demand]:
            yield Hit(member, f"Requires-Dist: {' and '.join(of_it) or f'nothing of {name}'}; required: {demand}")


@rule("N4", torch_only=True)
def version_file_agrees(facts: WheelFacts, _: Wanted) -> Iterator[Hit]:
    """torch reports the version of torch/version.py, which must be the wheel's"""
    version = facts.version_literals.get("__version__")
    if version is None:
        yield Hit("torch/version.py", "gives no __version__")
    elif facts.name and not is_same_version(version, facts.name.version):
        yield Hit("torch/version.py", f"__version__ = {version}; the file name says {facts.name.version}")


@rule("T1", of_archive=True)
def platform_is_macos_arm64(facts: WheelFacts, wanted: Wanted) -> Iterator[Hit]:
    """the wheel must claim one platform, macOS on arm64, or installers take it where it cannot run"""
    if facts.name is None:
        return
    if facts.name.macos is None:
        yield Hit(None, f"platform tag {facts.name.platform}; required: macosx_X_Y_arm64")
    elif wanted.deployment_target and facts.name.macos != (*wanted.deployment_target, 0)[:2]:
        yield Hit(
            None,
            f"platform tag {facts.name.platform}; the recipe's target is {format_version(wanted.deployment_target)}",
        )
    elif facts.name.macos[0] >= 11 and facts.name.macos[1]:
        # pip asks for macosx_12_0, never for macosx_12_3: PEP 425 tags of macOS 11 and later have minor 0.
        yield Hit(None, f"platform tag {facts.name.platform}: installers look for macosx_{facts.name.macos[0]}_0_arm64")


@rule("T2")
def inner_tags_agree(facts: WheelFacts, _: Wanted) -> Iterator[Hit]:
    """the tags inside the wheel must be those of its file name"""
    tags = facts.wheel.get("tag", ())
    if (count := sum(map(count_tags, tags))) > MOST_TAGS:
        yield Hit(_wheel_file(facts), f"its lines Tag stand for {count} tags; at most {MOST_TAGS} are read")
        return
    inside = frozenset(plain for tag in tags for plain in expand_tag(tag))
    if facts.name and inside != facts.name.tags:
        yield Hit(
            _wheel_file(facts),
            f"Tag: {' '.join(sorted(inside)) or 'none'}; the file name says {' '.join(sorted(facts.name.tags))}",
        )


@rule("T3")
def build_tag_agrees(facts: WheelFacts, _: Wanted) -> Iterator[Hit]:
    """the build tag inside the wheel must be that of its file name"""
    inside = facts.wheel.get("build", ())
    if facts.name and inside != ((facts.name.build,) if facts.name.build else ()):
        yield Hit(
            _wheel_file(facts), f"Build: {' '.join(inside) or 'none'}; the file name says {facts.name.build or 'none'}"
        )


@rule("T5", torch_only=True)
def extension_is_for_this_python(facts: WheelFacts, _: Wanted) -> Iterator[Hit]:
    """the extension module is loaded only by the Python whose name it carries"""
    found = {name: match for name in facts.modes if (match := _EXTENSION.fullmatch(name))}
    if not found:
        yield Hit(None, "no torch/_C.cpython-*-darwin.so")
    for name, match in found.items():
        if facts.name is None or match[4]:
            continue
        major, minor, threads, _abi3 = match.groups()
        # The abi of old wheels is `none`: it tells nothing of free threading.
        abi_is_threaded = facts.name.abi.endswith("t") if facts.name.abi != "none" else bool(threads)
        if facts.name.python != f"cp{major}{minor}" or bool(threads) != abi_is_threaded:
            yield Hit(name, f"the file name says {facts.name.python}-{facts.name.abi}")


def _wheel_file(facts: WheelFacts) -> str | None:
    return f"{facts.info_folders[0]}/WHEEL" if facts.info_folders else None


RULES = (
    file_name_is_a_wheel_name,
    info_folder_agrees,
    metadata_agrees,
    version_file_agrees,
    demands_are_exact,
    platform_is_macos_arm64,
    inner_tags_agree,
    build_tag_agrees,
    extension_is_for_this_python,
)
