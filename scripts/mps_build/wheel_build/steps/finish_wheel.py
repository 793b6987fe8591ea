"""The wheel of a build: repaired, written so that same inputs give same bytes, audited, delivered with its receipt."""

from __future__ import annotations

import base64
import csv
import hashlib
import io
import json
import os
import sys
import time
import zipfile
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from mps_build import __version__
from mps_build.common.environment import repair_environ
from mps_build.common.errors import AuditRejected, BuildEnvironmentError, CompileError
from mps_build.common.files import copy_whole, write_whole
from mps_build.common.json_text import head
from mps_build.common.process import Command, CommandFailed, capture, run_logged
from mps_build.common.receipts import Receipt, StepResult, fingerprint
from mps_build.common.scrubbing.scrubber import without_secrets
from mps_build.common.workspace import remove_tree
from mps_build.inspection.audit import audit_wheel

from ..artifacts import BuildContext, BuildEnvironment, SourceTree, Wheel
from ..compiler_cache.store import redacted
from ..zip_members import carry, compressed, recorded

_EXECUTABLE = 0o111
# Of compression: a wheel to hand on is made small, one that lasts until the next edit is made fast.
SMALL, FAST = 6, 1
_MODULE = "delocate.cmd.delocate_wheel"
_PROGRAM = Path(__file__).with_name("delocate_stored.py")


@dataclass(frozen=True, slots=True, kw_only=True)
class Delivered:
    """One accepted wheel in the wheelhouse, what the audit found, and the receipt that lies beside it."""

    wheel: Wheel
    python: str
    audit: Mapping[str, Any]
    receipt: Path


@dataclass(frozen=True, slots=True, kw_only=True)
class Finishing:
    """What one compiled wheel still needs, and from what it was made."""

    context: BuildContext
    environment: BuildEnvironment
    tree: SourceTree

    @property
    def key(self) -> str:
        """The receipts' key of this wheel: profile and Python, such as `release-3.12`."""
        return self.context.key(self.environment)

    def deliver(self, compiled: Receipt) -> Delivered:
        """Return the wheel in the wheelhouse.

        Raises:
            AuditRejected: the wheel is not what it should be; it stays in the work folder.
        """
        finished = self._finish(compiled)
        audited = self._audit(finished)
        if audited.facts["verdict"] != "accepted":
            raise _rejected(self._wheel(finished), audited.facts)
        return self._put_in_wheelhouse(finished, audited)

    def _finish(self, compiled: Receipt) -> Receipt:
        request, recipe, tree = self.context.request, self.context.request.recipe, self.tree
        raw = next(self.context.compiled_folder(self.environment).glob("*.whl"))
        output = self.context.workspace.root / "finished" / self.key
        bill = bill_of_materials(
            name=request.wheel.contents.distribution,
            version=request.version(dirty=bool(tree.dirty)) or raw.name.split("-")[1],
            commit=tree.commit,
            origin=recipe.source.repository or recipe.name,
            submodules=tree.submodules,
            patches={path.name: fingerprint(path)["sha256"] for path in request.source.patches},
            tools={"mps-build": __version__, **self.environment.tools, **self.environment.toolchain.facts},
            bundled=request.bundled,
        )

        def run() -> StepResult:
            wheel = raw
            if sys.platform == "darwin":
                wheel = repair_wheel(
                    raw,
                    python=Path(sys.executable),
                    output=self.context.workspace.root / "repaired" / self.key,
                    environ=repair_environ(os.environ),
                    exclude=(),
                    log=self.context.workspace.logs / f"repair_wheel-{self.key}.log",
                )
            kept = _set_aside(output) if request.profile == "develop" else None
            remove_tree(output)
            level = FAST if request.profile == "develop" else SMALL
            made = finish_wheel(wheel, output=output, epoch=tree.epoch, bill=bill, previous=kept, level=level)
            return StepResult(
                files=(made.path,), facts={"name": made.path.name, "size": made.size, "sha256": made.sha256}
            )

        inputs = {"previous": compiled.digest, "bill": bill, "epoch": tree.epoch, "platform": sys.platform}
        return self.context.ledger.run("finish_wheel", version=1, inputs=inputs, action=run, key=self.key)

    def _wheel(self, finished: Receipt) -> Wheel:
        path = self.context.workspace.root / "finished" / self.key / str(finished.facts["name"])
        return Wheel(path=path, size=finished.facts["size"], sha256=finished.facts["sha256"])

    def _audit(self, finished: Receipt) -> Receipt:
        wheel, expected = self._wheel(finished), self.context.request.expectation()

        def audit() -> StepResult:
            self.context.console.started("Audit")
            found = audit_wheel(wheel.path, profile="strict", expectation=expected)
            self.context.console.done()
            return StepResult(facts=found.document())

        inputs = {"wheel": wheel.sha256, "expectation": repr(expected), "tool": __version__}
        return self.context.ledger.run("audit_wheel", version=1, inputs=inputs, action=audit, key=self.key)

    def _put_in_wheelhouse(self, finished: Receipt, audited: Receipt) -> Delivered:
        wheel = self._wheel(finished)
        destination = self.context.request.wheel.folder / wheel.path.name
        beside = destination.with_name(f"{destination.name}.receipt.json")

        def put() -> StepResult:
            delivered = deliver_wheel(wheel, destination)
            document = self._document(delivered, audited.facts)
            write_whole(beside, json.dumps(without_secrets(document), indent=2, ensure_ascii=False) + "\n")
            return StepResult(files=(delivered.path, beside))

        inputs = {"previous": audited.digest, "wheelhouse": str(self.context.request.wheel.folder)}
        self.context.ledger.run("deliver_wheel", version=1, inputs=inputs, action=put, key=self.key)
        return Delivered(
            wheel=replace(wheel, path=destination),
            python=self.environment.python_version,
            audit=audited.facts,
            receipt=beside,
        )

    def _document(self, wheel: Wheel, audit: Mapping[str, Any]) -> dict[str, Any]:
        """Return the receipt that lies beside the wheel: all steps of this Python in one document."""
        request = self.context.request
        return {
            **head("wheel_receipt"),
            "tool": f"mps-build {__version__}",
            "wheel": {"file": wheel.path.name, "size": wheel.size, "sha256": wheel.sha256},
            "recipe": request.recipe.model_dump(mode="json"),
            "commit": request.source.commit,
            "python": self.environment.python_version,
            "profile": request.profile,
            "lifted": list(request.wheel.lifted),
            "settings": dict(request.compilers.settings),
            "dirty": list(self.tree.dirty),
            "patches": {path.name: fingerprint(path)["sha256"] for path in request.source.patches},
            "submodules": dict(self.tree.submodules),
            "environment": dict(sorted(redacted(self.environment.environ).items())),
            "reasons": dict(sorted(self.environment.reasons.items())),
            "tools": dict(self.environment.tools) | dict(self.environment.toolchain.facts),
            "host": dict(request.host.facts),
            "host_recording": dict(request.host.recording),
            "audit": {name: audit[name] for name in ("profile", "kind", "verdict", "findings")},
            "steps": [
                {"step": each.step, "digest": each.digest, "seconds": each.seconds, "facts": dict(each.facts)}
                for each in self.context.ledger.latest()
                if each.step not in ("audit_wheel", "deliver_wheel")
            ],
        }


def _set_aside(output: Path) -> Path | None:
    """Move the last finished wheel out of the way, and return where it is: the next one takes over what is equal."""
    last = sorted(output.glob("*.whl"))
    if len(last) != 1:
        return None
    aside = output.with_name(f"{output.name}-last")
    remove_tree(aside)
    output.rename(aside)
    return aside / last[0].name


def _rejected(wheel: Wheel, audit: Mapping[str, Any]) -> AuditRejected:
    errors = [finding for finding in audit["findings"] if finding["level"] == "error"]
    lines = [f"{finding['rule']} {finding['member'] or ''}: {finding['evidence']}" for finding in errors[:12]]
    return AuditRejected(
        f"{wheel.path.name} was rejected by the audit:\n  " + "\n  ".join(lines),
        hint=f"the rejected wheel is {wheel.path}; `nox -s audit_wheel -- '{wheel.path}'` says more",
        document={"audit": dict(audit)},
    )


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


def check_delocate(python: Path) -> None:
    """Refuse an interpreter without delocate: before the compile, which takes an hour, and not after it.

    Raises:
        BuildEnvironmentError: it is not installed there.
    """
    found = capture(Command(argv=(str(python), "-c", f"import {_MODULE}")), timeout_seconds=60)
    if not found.ok:
        why = (found.stderr.strip().splitlines() or [f"exit {found.exit}"])[-1]
        raise BuildEnvironmentError(
            f"delocate, which repairs and signs the wheel, does not run under {python}: {why}",
            hint=f"{python} -m pip install 'delocate>=0.13' (on a Mac it is installed with mps-build)",
        )


def repair_wheel(
    wheel: Path,
    *,
    python: Path,
    output: Path,
    environ: Mapping[str, str],
    exclude: tuple[str, ...],
    log: Path,
    ignore_missing: bool = False,
    wrap: Callable[[Command], Command] = lambda command: command,
) -> Path:
    """Return the repaired wheel in `output`; its members are stored, and finish_wheel compresses them.

    Args:
        python: an interpreter with delocate (the tool's own, not the build's).
        exclude: libraries of another wheel (torch, for companions) that must not be copied in:
            https://github.com/pytorch/vision/issues/4401
        ignore_missing: a companion's `@rpath/libtorch.dylib` leads nowhere until torch is loaded, and delocate stops
            at it before it looks at `exclude`; what else is missing, the audit tells (P5).
        wrap: brings the command to where delocate's tools are.

    Raises:
        CompileError: delocate failed; its last words are in the message.
    """
    remove_tree(output)
    output.mkdir(parents=True)
    program = _PROGRAM.read_text(encoding="utf-8")
    argv = [str(python), "-c", program, "--require-archs", "arm64", "-v", "-w", str(output)]
    argv += ["--ignore-missing-dependencies"] if ignore_missing else []
    for name in exclude:
        argv += ["-e", name]
    try:
        run_logged(wrap(Command(argv=(*argv, str(wheel)), environ=environ)), log=log)
    except CommandFailed as failure:
        text = "\n".join(failure.tail[-6:])
        raise CompileError(f"delocate failed:\n{text}", hint=f"the whole output is in {log}") from failure
    return next(output.glob("*.whl"))


def deliver_wheel(wheel: Wheel, destination: Path) -> Wheel:
    """Copy the wheel to `destination` and return it there."""
    copy_whole(wheel.path, destination)
    return replace(wheel, path=destination)
