"""Wheel -> wheel: the bill of materials goes in, and the zip is written so that same inputs give same bytes."""

from __future__ import annotations

import base64
import csv
import hashlib
import io
import json
import time
import zipfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from ..artifacts import Wheel
from ..zip_members import carry, compressed, recorded

_EXECUTABLE = 0o111
# Of compression: a wheel to hand on is made small, one that lasts until the next edit is made fast.
SMALL, FAST = 6, 1


def finish_wheel(
    wheel: Path,
    *,
    output: Path,
    epoch: int,
    bill: Mapping[str, Any],
    replaced: Mapping[str, bytes] | None = None,
    previous: Path | None = None,
    level: int = SMALL,
) -> Wheel:
    """Write the wheel anew to `output` (a folder) and return it; `replaced` are members with other contents.

    Members in the order of their names with RECORD last, one time stamp (`epoch`, seconds since 1970,
    not before 1980 where zip begins), modes 0644 and 0755, no extra fields. The bill (CycloneDX) goes
    to .dist-info/sboms/, as PEP 770 has it: https://peps.python.org/pep-0770/

    Args:
        previous: a wheel that this function wrote before; what is equal in it is not compressed again.
            The result has the same bytes with it and without.
        level: of compression, 1 to 9; one level for all wheels that are `previous` to each other.
    """
    output.mkdir(parents=True, exist_ok=True)
    destination = output / wheel.name
    beside = output / f".{wheel.name}.part"
    stamp = time.gmtime(max(epoch, 315532800))[:6]
    whole = hashlib.sha256()
    with zipfile.ZipFile(wheel) as source, _Kept(previous, source) as kept, beside.open("w+b") as file:
        info_folder = _dist_info(source)
        record_name = f"{info_folder}/RECORD"
        bill_name = f"{info_folder}/sboms/mps-build.cdx.json"
        bill_bytes = (
            json.dumps(bill, indent=2, sort_keys=True, ensure_ascii=False).encode("utf-8", "backslashreplace") + b"\n"
        )
        members = {info.filename: info for info in source.infolist() if not info.is_dir()}
        given = {**(replaced or {}), bill_name: bill_bytes}
        rows: list[tuple[str, str, str]] = []
        with zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED) as target:
            for name in sorted({*members, bill_name} - {record_name, f"{record_name}.jws", f"{record_name}.p7s"}):
                mode = members[name].external_attr >> 16 if name in members else 0o644
                new = _info(name, stamp, 0o755 if mode & _EXECUTABLE else 0o644, level)
                if name not in given and (old := kept.equal(name, new)):
                    carry(target, new, kept.bytes_of(old), like=old)
                    rows.append((name, *kept.rows[name]))
                    continue
                hasher, size = hashlib.sha256(), 0
                with target.open(new, "w", force_zip64=False) as out:
                    for chunk in (given[name],) if name in given else _chunks(source, members[name]):
                        hasher.update(chunk)
                        size += len(chunk)
                        out.write(chunk)
                encoded = base64.urlsafe_b64encode(hasher.digest()).rstrip(b"=").decode()
                rows.append((name, f"sha256={encoded}", str(size)))
            rows.append((record_name, "", ""))
            target.writestr(_info(record_name, stamp, 0o644, level), _record(rows))
        file.seek(0)
        while chunk := file.read(1 << 20):
            whole.update(chunk)
        size = file.tell()
    beside.replace(destination)
    return Wheel(path=destination, size=size, sha256=whole.hexdigest())


class _Kept:
    """The members of an earlier finished wheel that the next one can take over as they are."""

    def __init__(self, previous: Path | None, source: zipfile.ZipFile) -> None:
        self._wheel = zipfile.ZipFile(previous) if previous else None
        self.rows = dict(recorded(self._wheel)) if self._wheel else {}
        self._wanted = recorded(source) if self._wheel else {}

    def __enter__(self) -> _Kept:
        return self

    def __exit__(self, *_: object) -> None:
        if self._wheel:
            self._wheel.close()

    def equal(self, name: str, new: zipfile.ZipInfo) -> zipfile.ZipInfo | None:
        """Return the earlier member, if both RECORDs name one hash and the rest of the entry is the same."""
        if self._wheel is None or name not in self.rows or self.rows[name] != self._wanted.get(name):
            return None
        old = self._wheel.getinfo(name)
        same = (old.external_attr, old.date_time, old.compress_type)
        return old if same == (new.external_attr, new.date_time, new.compress_type) else None

    def bytes_of(self, old: zipfile.ZipInfo) -> bytes:
        assert self._wheel is not None
        return compressed(self._wheel, old)


def bill_of_materials(
    *,
    name: str,
    version: str,
    commit: str | None,
    origin: str,
    submodules: Mapping[str, str],
    patches: Mapping[str, str],
    tools: Mapping[str, str],
    bundled: Mapping[str, str],
) -> dict[str, Any]:
    """Return a CycloneDX 1.6 document: what was built, from which commits, with which patches and tools.

    Args:
        patches: patch file -> sha256. bundled: libraries copied in, name -> "version sha256".

    It holds no date and no serial number, so that same inputs give same bytes.
    """
    components: list[dict[str, Any]] = [
        {"type": "library", "name": path, "version": pinned, "bom-ref": f"submodule:{path}"}
        for path, pinned in sorted(submodules.items())
    ]
    components += [
        {
            "type": "library",
            "name": library,
            "version": what.split()[0],
            "bom-ref": f"bundled:{library}",
            "hashes": [{"alg": "SHA-256", "content": what.split()[1]}],
        }
        for library, what in sorted(bundled.items())
    ]
    subject: dict[str, Any] = {
        "type": "library",
        "bom-ref": name,
        "name": name,
        "version": version,
        "externalReferences": [{"type": "vcs", "url": origin}],
        "properties": [{"name": "mps-build:commit", "value": commit or "unknown"}],
    }
    if patches:
        subject["pedigree"] = {
            "patches": [{"type": "unofficial", "diff": {"url": f"patches/{patch}"}} for patch in sorted(patches)],
            "notes": "; ".join(f"{patch} sha256:{digest}" for patch, digest in sorted(patches.items())),
        }
    return {
        "bomFormat": "CycloneDX",
        "specVersion": "1.6",
        "version": 1,
        "metadata": {
            "component": subject,
            "tools": {
                "components": [
                    {"type": "application", "name": tool, "version": found} for tool, found in sorted(tools.items())
                ]
            },
        },
        "components": components,
        "dependencies": [{"ref": name, "dependsOn": [component["bom-ref"] for component in components]}],
    }


def _info(name: str, stamp: tuple[int, ...], mode: int, level: int) -> zipfile.ZipInfo:
    info = zipfile.ZipInfo(name, date_time=stamp)  # type: ignore[arg-type]  # time.gmtime()[:6] is six numbers
    info.create_system = 3
    info.external_attr = (0o100000 | mode) << 16
    info.compress_type = zipfile.ZIP_DEFLATED
    # A member that is written as a stream has its own level, and not the archive's; 3.13 made the name public.
    setattr(info, "compress_level" if hasattr(info, "compress_level") else "_compresslevel", level)
    return info


def _chunks(source: zipfile.ZipFile, info: zipfile.ZipInfo) -> Any:
    with source.open(info) as stream:
        while chunk := stream.read(1 << 20):
            yield chunk


def _dist_info(source: zipfile.ZipFile) -> str:
    return next(name.split("/")[0] for name in source.namelist() if name.split("/")[0].endswith(".dist-info"))


def _record(rows: list[tuple[str, str, str]]) -> str:
    text = io.StringIO()
    csv.writer(text, lineterminator="\n").writerows(rows)
    return text.getvalue()
