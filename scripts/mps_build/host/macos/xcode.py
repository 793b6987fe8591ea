"""What Xcode's tools, its compilers and linkers, and the Metal compiler say of themselves."""

from __future__ import annotations

import re

from .answers import Answer, Call, Facts, first
from .versions import is_beta_build

# Builds that look like a seed's and were released all the same.
_RELEASES_LIKE_SEEDS = frozenset({"16C5032a"})
# The letter series of builds and the versions they belong to.
_SERIES = {
    "16A": ("16.0",), "16B": ("16.1",), "16C": ("16.2",), "16E": ("16.3",), "16F": ("16.4",),
    "17A": ("26.0",), "17B": ("26.1",), "17C": ("26.2", "26.3"), "17E": ("26.4",), "17F": ("26.5", "26.6"),
    "27A": ("27.0",),
}  # fmt: skip
_VERSION = re.compile(r"^\s*Xcode (\d+(?:\.\d+)+)\s*$", re.MULTILINE)
_BUILD = re.compile(r"^\s*Build version (\d+[A-Z]\d+[a-z]?)\s*$", re.MULTILINE)


def parse_xcode_version(answer: Answer) -> Facts:
    """Return Xcode's version, build and whether it is a seed; a version that may have lost its tail is none."""
    if len(set(_VERSION.findall(answer.text))) > 1 or len(set(_BUILD.findall(answer.text))) > 1:
        return {}  # several Xcodes answered, and nothing says which is which
    for text, ends_whole in ((answer.stdout, answer.ends_whole), (answer.stderr, True)):
        if match := _VERSION.search(text):
            build = _BUILD.search(text, match.end())
            if not build:
                # Nothing after it and no line end: `26.4` may have been cut out of `26.4.1`.
                return {"version": match.group(1)} if ends_whole or text[match.end() :].strip() else {}
            return _named(match.group(1), build.group(1))
    return {}


def is_seed(build: str) -> bool:
    """Say whether a build of Xcode is a pre-release.

    >>> is_seed("17A5305f"), is_seed("16C5032a"), is_seed("15C500b")
    (True, False, False)
    """
    return is_beta_build(build) and build not in _RELEASES_LIKE_SEEDS


def _named(version: str, build: str) -> Facts:
    facts: Facts = {"version": version, "build": build, "beta": is_seed(build)}
    series = _SERIES.get(re.sub(r"(?<=[A-Z]).*", "", build))
    if series and ".".join(version.split(".")[:2]) not in series:
        facts["suspicious"] = "version_build_mismatch"
    return facts


def parse_sdk_records(answer: Answer, call: Call) -> Facts:
    """Read `xcodebuild -version -sdk`: a record per SDK, of which macOS's counts, or one value of one SDK."""
    item = next(
        (word for word in ("SDKVersion", "Path", "ProductBuildVersion", "PlatformPath") if word in call.arguments), None
    )
    if item:
        return {
            "SDKVersion": parse_sdk_version,
            "Path": parse_sdk_path,
            "ProductBuildVersion": parse_sdk_build,
            "PlatformPath": parse_platform_path,
        }[item](answer)
    facts = parse_xcode_version(answer)
    for record in re.split(r"\n\s*\n", answer.stdout):
        if re.search(r"\(macosx[\d.]+\)\s*$", record.strip().splitlines()[0] if record.strip() else ""):
            facts |= {
                key: value
                for key, name in (("sdk_version", "SDKVersion"), ("sdk_build", "ProductBuildVersion"))
                if (value := first(rf"^\s*{name}:\s*(\S+)\s*$", record))
            }
            break
    return facts


def parse_show_sdks(answer: Answer) -> Facts:
    """Return the macOS SDKs that `xcodebuild -showsdks` lists, each once (DriverKit's are none)."""
    found = re.findall(
        r"(?:-sdk |\"canonicalName\"\s*:\s*\")(macosx\d+(?:\.\d+)*)[\",]*\s*$", answer.stdout, re.MULTILINE
    )
    names = list(dict.fromkeys(found))
    if not names:
        return {}
    return {"macos_sdks": [name.removeprefix("macosx") for name in names], "sdk_names": names}


def parse_first_launch(answer: Answer) -> Facts:
    """Read `-checkFirstLaunchStatus`: exit 0 is the whole answer; what "needed" exits with is in no record."""
    return {"first_launch_needed": False} if answer.exit == 0 else {}


def parse_run_first_launch(answer: Answer) -> Facts:
    """Read `xcodebuild -runFirstLaunch`: whether the first start was completed."""
    return {"done": True} if re.search(r"Install\s+Succeeded", answer.text) else {}


def parse_developer_dir(answer: Answer, environ: dict[str, str]) -> Facts:
    """Return the directory that `xcode-select -p` prints; with DEVELOPER_DIR set that is its echo, unchecked."""
    path = _path(answer)
    if path is None:
        return {}
    facts: Facts = {"developer_dir": path, "kind": kind_of(path)}
    # xcode-select refuses to choose a directory of neither form, so such an answer is an echo.
    chosen = environ.get("DEVELOPER_DIR", "").rstrip("/")
    if (chosen and path.rstrip("/") in (chosen, f"{chosen}/Contents/Developer")) or facts["kind"] == "other":
        facts["from_env"] = True
    return facts


def parse_variables(answer: Answer, *, echoed: str | None = None) -> Facts:
    """Return where SDKROOT and DEVELOPER_DIR lead: nobody has looked whether anything is there.

    Args:
        echoed: the one variable whose bare value was printed.
    """
    found = dict(
        re.findall(r"^\s*(?:export |declare -x )?(SDKROOT|DEVELOPER_DIR)=\"?(/[^\"\n]*?)\"?\s*$", answer.stdout, re.M)
    )
    if echoed and (path := _path(answer)):
        found[echoed] = path
    facts: Facts = {"sdkroot": found["SDKROOT"]} if "SDKROOT" in found else {}
    if directory := found.get("DEVELOPER_DIR"):
        facts |= {"developer_dir": directory, "kind": kind_of(directory), "from_env": True}
    return facts


def kind_of(path: str) -> str:
    """Tell by a path's form whose it is: xcode, clt or other."""
    if re.search(r"\.app(?:/Contents/Developer(?:/|$)|/?$)", path):
        return "xcode"
    return "clt" if "/Library/Developer/CommandLineTools" in path else "other"


def parse_sdk_path(answer: Answer) -> Facts:
    """Read `xcrun --show-sdk-path`: the path, and whether it is Xcode's or the Command Line Tools'."""
    path = _path(answer)
    return {"sdk_path": path, "kind": kind_of(path)} if path and path.endswith(".sdk") else {}


def parse_platform_path(answer: Answer) -> Facts:
    """Read `xcrun --show-sdk-platform-path`."""
    path = _path(answer)
    return {"platform_path": path} if path and path.endswith(".platform") else {}


def parse_sdk_version(answer: Answer) -> Facts:
    """Read `xcrun --show-sdk-version`, such as 26.5."""
    line = answer.last_line
    return {"sdk_version": line} if re.fullmatch(r"\d+(?:\.\d+)+", line) else {}


def parse_sdk_build(answer: Answer) -> Facts:
    """Read `xcrun --show-sdk-build-version`, such as 25F70."""
    line = answer.last_line
    return {"sdk_build": line} if re.fullmatch(r"\d+[A-Z]\d+[a-z]?", line) else {}


def parse_found_tool(answer: Answer) -> Facts:
    """Read `xcrun -f TOOL`: where it lies, which proves nothing about whether it runs."""
    path = _path(answer)
    if path is None:
        return {}
    return {"path": path, **(whereabouts(path) if "metal" in path.rsplit("/", 1)[-1] else {})}


def whereabouts(path: str) -> Facts:
    """Tell where a Metal compiler lies; the mount's last characters change, its number does not."""
    if version := first(r"/com\.apple\.MobileAsset\.MetalToolchain-v(\d+(?:\.\d+)*)\.", path):
        return {"where": "cryptex", "mount_version": version}
    if "/DVTDownloads/" in path:
        return {"where": "dvtdownloads"}
    return {"where": "xcode_app" if re.search(r"\.app/Contents/", path) else "other"}


def parse_xcode_paths(answer: Answer) -> Facts:
    """Return every Xcode.app listed, in the order given; an empty list may only mean that Spotlight is off."""
    paths = [line.strip() for line in answer.stdout.splitlines() if re.match(r"\s*/.*\.app/?\s*$", line)]
    return {"xcodes": [{"path": path.rstrip("/")} for path in paths]} if paths else {}


def parse_receipt(answer: Answer) -> Facts:
    """Read `pkgutil --pkg-info`: the package, its version, and the first two parts of that."""
    package = first(r"^\s*package-id:\s*(\S+)\s*$", answer.stdout)
    version = first(r"^\s*version:\s*(\d+(?:\.\d+)+)\s*$", answer.stdout)
    if not package or not version:
        return {}
    return {"package": package, "package_version": version, "package_short": ".".join(version.split(".")[:2])}


def parse_xcode_select_version(answer: Answer) -> Facts:
    """Read `xcode-select --version`."""
    version = first(r"^\s*xcode-select version (\d+(?:\.\d+)*)\.?\s*$", answer.stdout)
    return {"xcode_select_version": version} if version else {}


def _path(answer: Answer) -> str | None:
    """Return the last line that is a whole absolute path (a message that begins with a path goes on behind a colon)."""
    paths = [line.strip() for line in answer.stdout.splitlines() if re.match(r"\s*/[^:]*\S\s*$", line)]
    return paths[-1] if paths else None


_CLANG = re.compile(r"(?:(Apple|Homebrew) )?(?:clang|LLVM) version (\d+(?:\.\d+)*)(?: \((clang-[\d.]*\d)\))?")
_CONDA = re.compile(r"(?:mini|ana|micro|mamba)(?:conda|forge|mamba)|/conda|/envs/", re.IGNORECASE)


def parse_clang(answer: Answer, call: Call | None = None) -> Facts:
    """Read `clang --version` or `-v`: whose compiler, its version, its build."""
    text = answer.text
    match = next(
        (match for match in _CLANG.finditer(text) if not re.search(r"LTO support using[^\n]*$", text[: match.start()])),
        None,
    )
    if not match or match.group(0).startswith("LLVM"):
        return {}
    facts: Facts = {
        "vendor": {"Apple": "apple", "Homebrew": "homebrew", None: "llvm"}[match.group(1)],
        "clang_version": match.group(2),
    }
    if match.group(3):
        facts["clang_build"] = match.group(3)
    rest = text[match.end() :]
    if target := first(r"^\s*Target:\s*(\S+)\s*$", rest):
        facts["target"] = target
    installed = first(r"^\s*InstalledDir:[ \t]*(/.*\S)\s*$", rest) or ""
    triple = call is not None and re.match(r"arm64-apple-darwin[\d.]+-clang", call.program)
    if facts["vendor"] == "llvm" and (triple or _CONDA.search(installed)):
        facts["maybe_conda"] = True
    return facts


def parse_ld(answer: Answer) -> Facts:
    """Read `ld -v`: Xcode 15.0 called its new linker `dyld`, later ones `ld`; `ld64` is the one before."""
    match = re.search(r"PROGRAM:(\S+)\s+PROJECT:(ld64|ld|dyld)-(\d+(?:\.\d+)*)", answer.text)
    if not match:
        return {}
    program, project, version = match.groups()
    linker = "ld_classic" if program == "ld-classic" else "ld64" if project == "ld64" else "ld_prime"
    facts: Facts = {"linker": linker, "ld_version": version}
    if classic := first(r"will use ld-classic for:[ \t]*(\S.*)$", answer.text):
        facts["classic_for"] = classic.split()
    return facts


# What our own probe prints behind each language standard that compiled (probe_table.METAL_PROOF).
_USELESS = frozenset({"uninstalled", "notInstalled", "installedUpdateAvailable"})
PROOF_MARK = "mps-build compiled"


def parse_metal_version(answer: Answer) -> Facts:
    """Read `metal --version` (stdout) or `metal -v` (stderr); only a compiler that runs prints this."""
    match = re.search(r"Apple (?:metal|LLVM) version ([\d.]*\d) \(metalfe-([\d.]*\d)\)", answer.text)
    if not match:
        return {}
    facts: Facts = {"metal_version": match.group(1), "metalfe": match.group(2)}
    if target := first(r"^\s*Target:\s*(\S+)\s*$", answer.text):
        facts["target"] = target
    if installed := first(r"^\s*InstalledDir:\s*(/.*\S)\s*$", answer.text):
        facts |= whereabouts(installed)
    return facts


def parse_metallib_version(answer: Answer) -> Facts:
    """Read `metallib --version`: the linker's and the front end's version."""
    match = re.search(r"AIR-LLD ([\d.]*\d) \(metalfe-([\d.]*\d)\)", answer.text)
    return {"metallib_version": match.group(1), "metalfe": match.group(2)} if match else {}


def parse_component(answer: Answer) -> Facts:
    """Read `-showComponent MetalToolchain`: a status proves no compiler, but some disprove one."""
    status = first(r"^\s*Status:\s*(\w+)\s*$", answer.text)
    if not status:
        return {}
    facts: Facts = {"status": status, "usable": False if status in _USELESS else None}
    if build := first(r"^\s*Build Version:\s*(\w+)\s*$", answer.text):
        facts["build"] = build
    if identifier := first(r"^\s*Toolchain Identifier:\s*(\S+)\s*$", answer.text):
        facts["toolchain_identifier"] = identifier
    if mount := first(r"MetalToolchain-v(\d+(?:\.\d+)*)\.", answer.text):
        facts["mount_version"] = mount
    if status == "uninstalled":
        facts["error"] = "metal_toolchain_missing"
    return facts


def parse_component_download(answer: Answer) -> Facts:
    """Read `-downloadComponent`: "Done downloading" does not prove a compiler; our own time limit is not an answer."""
    if match := re.search(r"Done downloading: Metal Toolchain (\w+)", answer.text):
        return {"done": True, "build": match.group(1)}
    began = "Beginning asset download" in answer.text
    if answer.exit in (124, 137) and began:
        return {"done": False, "error": "metal_download_stalled"}
    return {}


def parse_metal_proof(answer: Answer) -> Facts:
    """Return the language standards that compiled in our own probe; none only if the compiler itself refused them."""
    standards = re.findall(rf"^\s*{PROOF_MARK} metal(\d\.\d)\s*$", answer.stdout, re.MULTILINE)
    refused = re.search(r"invalid value 'metal\d\.\d' in '-std=", answer.text)
    return {"metal_standards": standards} if standards or refused else {}
