"""The GPUs: system_profiler's displays part as text and JSON, and the registry's core counts."""

from __future__ import annotations

import re

from .answers import Answer, Facts

# GPUs from before Metal: the only ones whose record ends without a word on it.
_BEFORE_METAL = re.compile(
    r"HD Graphics(?: [23]000)?$|GMA\b|Radeon (?:HD )?[2-6]\d{3}M?\b|Radeon X\d"
    r"|GeForce (?:[89]\d{3}M?|(?:GT )?[123]\d{2}M?)\b"
)
_FIELD = re.compile(r"^([ \t]*)([^:\n]+):[ \t]*(.*?)[ \t]*$")


def parse_displays(answer: Answer, *, as_document: bool = False) -> Facts:
    """Return the GPUs, the cores of Apple's, and how many displays hang on them.

    A record of a GPU that has Metal says so in its end; where that is missing the text was cut
    off, and what is left is not the whole truth.

    Args:
        as_document: JSON or XML was asked for, which is never empty.
    """
    if '"SPDisplaysDataType"' in answer.stdout or '"_name"' in answer.stdout:
        return _parse_json(answer)
    if not answer.stdout.strip():
        empty: Facts = {"gpus": [], "gpu_cores": None, "displays": 0, "virtual": "unknown"}
        return empty if answer.exit in (0, None) and not as_document else {}
    gpus, displays = _records(answer.stdout)
    if not gpus:
        return {}
    found = [_gpu(gpu) for gpu in gpus]
    facts: Facts = {"gpu_cores": _apple_cores(found)}
    if any(_is_cut(gpu) for gpu in found) or re.search(r":\s*$", answer.stdout):
        return facts | {"complete": False}
    facts |= {"gpus": found, "displays": displays}
    return facts | ({"virtual": True} if any("Paravirtual" in gpu["name"] for gpu in found) else {})


def _records(text: str) -> tuple[list[dict[str, str]], int]:
    """Return each GPU's own labels, and how many headings stand under its displays.

    A display may be called anything, a GPU's name included: a heading belongs to the next
    GPU if `Chipset Model` follows it. At the very end only its indent can tell.
    """
    gpus: list[dict[str, str]] = []
    displays, display_indent, heading_indent = 0, None, None
    for line in text.splitlines():
        match = _FIELD.match(line)
        if not match:
            continue
        indent, label, value = len(match.group(1)), match.group(2), match.group(3)
        if label == "Chipset Model":
            gpus.append({label: value})
            display_indent = heading_indent = None
            continue
        if heading_indent is not None:
            displays, heading_indent = displays + 1, None
        if label == "Displays" and gpus and not value:
            display_indent = indent
        elif display_indent is not None and not value:
            heading_indent = indent
        elif display_indent is None and gpus and value:
            gpus[-1].setdefault(label, value)
    if heading_indent is not None and display_indent is not None and heading_indent > display_indent:
        displays += 1
    return gpus, displays


def _gpu(labels: dict[str, str]) -> Facts:
    vendor = re.match(r"(.*?)\s*(?:\((0x[0-9a-fA-F]+)\))?$", labels.get("Vendor", ""))
    metal = next((value for label, value in labels.items() if re.fullmatch(r"Metal(?: Support| Family)?", label)), None)
    cores = labels.get("Total Number of Cores", "")
    return {
        "name": labels["Chipset Model"],
        "vendor": (vendor.group(1) if vendor else None) or None,
        "vendor_id": vendor.group(2) if vendor else None,
        "cores": int(cores) if cores.isdecimal() else None,
        "metal": metal,
        "metal_supported": _is_supported(metal),
    }


def _is_supported(metal: str | None) -> bool | str:
    if metal is None:
        return "unknown"
    return not re.search(r"not supported|unsupported", metal, re.IGNORECASE)


def _is_cut(gpu: Facts) -> bool:
    if gpu["vendor"] is None:
        return True
    return gpu["metal"] is None and not _BEFORE_METAL.search(gpu["name"]) and "Paravirtual" not in gpu["name"]


def _apple_cores(gpus: list[Facts]) -> int | None:
    return next((gpu["cores"] for gpu in gpus if gpu.get("cores") is not None and "Apple" in str(gpu["name"])), None)


def _parse_json(answer: Answer) -> Facts:
    """Read the JSON form pair by pair, so that a document that was cut off still tells what it holds."""
    text = answer.stdout
    whole = text.rstrip().endswith("}") and text.count("{") == text.count("}")
    gpus: list[Facts] = []
    displays, depth, display_depth = 0, 0, None
    for match in re.finditer(r'"(\w[\w-]*)"\s*:\s*"([^"\n]*)"|"(spdisplays_ndrvs)"|([{\[])|([}\]])', text):
        key, value, drivers, opening, closing = match.groups()
        if opening:
            depth += 1
        elif closing:
            depth -= 1
            if display_depth is not None and depth <= display_depth:
                display_depth = None
        elif drivers:
            display_depth = depth
        elif display_depth is not None:
            displays += key == "_name"
        elif key == "_name":
            gpus.append({"name": value})
        elif gpus:
            gpus[-1] |= _json_field(key, value)
    if not gpus:
        return {}
    if not whole and (answer.exit == 0 or not all("metal" in gpu for gpu in gpus)):
        return {"complete": False}  # which part of a record came through is chance
    facts: Facts = {"gpus": gpus, "gpu_cores": next((gpu["cores"] for gpu in gpus if "cores" in gpu), None)}
    return facts | ({"displays": displays} if whole else {}) | {"complete": whole}


def _json_field(key: str, value: str) -> Facts:
    if key in ("spdisplays_mtlgpufamilysupport", "spdisplays_metalfamily", "spdisplays_metal"):
        return {"metal": value, "metal_supported": _is_supported(value)}
    if key == "sppci_cores" and value.isdecimal():
        return {"cores": int(value)}
    if key == "sppci_model":
        return {"name": value}
    if key == "spdisplays_vendor":
        match = re.match(r"(?:sppci_vendor_)?(.*?)\s*(?:\((0x[0-9a-fA-F]+)\))?$", value)
        return {"vendor": match.group(1), **({"vendor_id": match.group(2)} if match.group(2) else {})} if match else {}
    return {}


def parse_ioreg(answer: Answer) -> Facts:
    """Read the registry: cores by level as little-endian data, the GPU's as a plain number."""
    text = answer.stdout
    levels = {
        level: int.from_bytes(bytes.fromhex(data), "little")
        for level, data in re.findall(r'"([a-z])-core-count" = <([0-9a-f]{8})>', text)
    }
    cores = re.search(r'"gpu-core-count" = (\d+)', text)
    # Every Apple chip has two kinds of cores: one alone is half an answer.
    facts: Facts = {"cpu_levels": levels} if len(levels) > 1 else {}
    accelerators = re.findall(r"\+-o (\S+)\s+<class \S*(?:Accelerator|AGX)\S*", text)
    if cores:
        facts["gpu_cores"] = int(cores.group(1))
    if accelerators:
        counts = [int(cores.group(1))] if cores and len(accelerators) == 1 else [None] * len(accelerators)
        apple = any(name.startswith("AGX") for name in accelerators)
        facts |= {
            "gpus": [{"name": name, "cores": count} for name, count in zip(accelerators, counts, strict=False)],
            "apple_silicon": True if apple else "unknown",
        }
        if not re.search(r"^\s*[|\s]*}\s*$", text, re.MULTILINE):
            facts["complete"] = False
    return facts
