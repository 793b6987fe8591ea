"""Ask cases of the device suite in one process of the simulated interpreter; a line for each, through a pipe.

python ask.py SUITE_FOLDER CASES.json PIPE [--cover]      (started by child.py)
python ask.py SUITE_FOLDER --list

MUTANTS_SUITE_SEED in the environment: the suite's --seed.

CASES.json: [[file, case's id, may it fail], ...], run in this order; after the first that fails and may not, it ends.
A line is {"started": id}, or {"id", "outcome", "why", "seconds", "digest", "blocks"}.
"""

from __future__ import annotations

import base64
import ctypes
import hashlib
import json
import os
import re
import sys
import time
import warnings
import zlib
from pathlib import Path
from typing import Any, Callable

os.environ.pop("PYTORCH_ENABLE_MPS_FALLBACK", None)
_SUITE = sys.argv[1]
sys.path[:0] = [_SUITE, str(Path(__file__).resolve().parents[1])]

import pytest  # noqa: E402
import torch  # noqa: E402

import suite_in_process  # noqa: E402
from engine import compare, states  # noqa: E402
from engine.runs import Bench  # noqa: E402
from engine.selection import prepare_device, why_not_here  # noqa: E402

_ADDRESS = re.compile(r"0x[0-9a-f]+")


class Digest:
    """The bits of all that a case reads back from its device, as one number."""

    def __init__(self) -> None:
        self._hash = hashlib.sha256()
        self.is_read = False

    def take(self) -> str:
        """Return the digest since the last call, and begin anew; empty where nothing was read."""
        found, self._hash = self._hash.hexdigest()[:12] if self.is_read else "", hashlib.sha256()
        self.is_read = False
        return found

    def leaves(self, leaves: list[Any]) -> None:
        """Add what one run answered."""
        self.is_read = True
        for leaf in leaves:
            self._hash.update(f"{leaf.path} {leaf.device} {leaf.stride} ".encode())
            self.value(leaf.value)

    def value(self, value: Any) -> None:
        """Add one tensor on the host, or a plain value."""
        self.is_read = True
        if isinstance(value, torch.Tensor) and value.layout is torch.strided and not value.is_quantized:
            plain = value.detach().resolve_conj().resolve_neg().contiguous()
            self._hash.update(f"{plain.dtype} {tuple(plain.shape)}".encode())
            self._hash.update(ctypes.string_at(plain.data_ptr(), plain.numel() * plain.element_size()))
        else:
            text = getattr(value, "text", None)
            self._hash.update(_ADDRESS.sub("0x", str(value) if text is None else text).encode())


def watch(digest: Digest) -> None:
    """Let the digest see the answers of compared cases, and in free checks what Python reads from a device."""
    whole = states.answers_of

    def answers_of(case: Any, bench: Any, run: Any, draw: Any) -> Any:
        leaves = whole(case, bench, run, draw)
        if run.tested:
            digest.leaves(leaves)
        return leaves

    states.answers_of = answers_of
    for name in ("cpu", "item", "tolist", "to"):
        _watch_method(name, digest)


def _watch_method(name: str, digest: Digest) -> None:
    method: Callable[..., Any] = getattr(torch.Tensor, name)

    def read(self: torch.Tensor, *arguments: Any, **more: Any) -> Any:
        found = method(self, *arguments, **more)
        if READS[0] and self.device.type == "mps" and (not isinstance(found, torch.Tensor) or found.is_cpu):
            digest.value(found)
        return found

    setattr(torch.Tensor, name, read)


SEED = int(os.environ.get("MUTANTS_SUITE_SEED", "0"))
READS = [False]  # only in free checks: compared cases are digested by their answers


class Blocks:
    """Which blocks of the instrumented library ran."""

    def __init__(self) -> None:
        folder = os.environ["LD_LIBRARY_PATH"].split(os.pathsep)[0]
        self._library = ctypes.CDLL(str(Path(folder) / "libmps_simulated.so"))
        self._into = (ctypes.c_uint8 * self._library.mps_build_blocks())()

    def forget_graphs(self) -> None:
        """Let the next case make its graphs itself."""
        torch.mps.synchronize()
        self._library.mps_build_forget_graphs()

    def take(self) -> str:
        """Return the blocks since the last call: a bit each, packed."""
        self._library.mps_build_take_blocks(self._into)
        bits = int("".join("1" if one else "0" for one in reversed(bytes(self._into))) or "0", 2)
        packed = zlib.compress(bits.to_bytes((len(self._into) + 7) // 8, "little"))
        return base64.b64encode(packed).decode()


def listed() -> list[Any]:
    """Return the default cases: [file, id, is it of --quick], those of --quick first; what runs alone is not."""
    order = suite_in_process.requested(SEED)
    alone = {case.id for _, case in suite_in_process.core() if case.alone}
    return [
        [file, name, place < order.quick] for place, (name, file) in enumerate(order.ids.items()) if name not in alone
    ]


def cases_of(wanted: list[Any]) -> dict[str, Any]:
    """Return the cases that are wanted, by id: those of files, and drawn ones by their id alone."""
    files = {file for file, _, _ in wanted} - {"drawn"}
    found = {case.id: case for file in sorted(files) for case in suite_in_process.module_of(file).cases}
    found.update((name, suite_in_process.drawn_case(name)) for file, name, _ in wanted if file == "drawn")
    return found


def main() -> None:
    """Ask the cases."""
    warnings.filterwarnings("ignore")
    if sys.argv[2] == "--list":
        print(json.dumps(listed()))
        return
    wanted = json.loads(Path(sys.argv[2]).read_text(encoding="utf-8"))
    pipe = os.fdopen(int(sys.argv[3]), "w", encoding="utf-8", buffering=1)
    device = prepare_device("mps")
    torch.set_num_threads(1)
    bench, digest = Bench(device, seed=SEED), Digest()
    bench.still_serves()
    blocks = Blocks() if "--cover" in sys.argv else None
    if blocks:
        torch.mps.synchronize()
        pipe.write(json.dumps({"id": "", "blocks": blocks.take()}) + "\n")
    watch(digest)
    cases = cases_of(wanted)
    last = ""
    for name, case_id, may_fail in wanted:
        if last not in ("", name):
            bench.release()
        last = name
        pipe.write(json.dumps({"started": case_id}) + "\n")
        row = ask(cases[case_id], bench, digest, blocks)
        pipe.write(json.dumps({"id": case_id, **row}) + "\n")
        if row["outcome"] == "failed" and (not may_fail or not bench.still_serves()):
            break
    pipe.write(json.dumps({"end": True}) + "\n")
    pipe.flush()
    os._exit(0)  # nothing of the interpreter's end is needed


def ask(case: Any, bench: Bench, digest: Digest, blocks: Blocks | None) -> dict[str, Any]:
    """Return how one case ended."""
    if blocks:
        blocks.forget_graphs()
        blocks.take()
    digest.take()
    READS[0] = case.check
    begun, why = time.process_time(), why_not_here(case, device=bench.device, full=False)
    outcome = "skipped" if why else "passed"
    try:
        if not why:
            states.run_case(case, bench)
    except (states.Refused, pytest.skip.Exception) as refused:
        outcome, why = "skipped", str(refused)
    except (KeyboardInterrupt, MemoryError):
        raise
    except BaseException as raised:
        outcome, why = "failed", f"{type(raised).__name__}: {raised}"
    READS[0] = False
    row = {
        "outcome": outcome,
        "why": _ADDRESS.sub("0x", why or "")[:300],
        "seconds": round(time.process_time() - begun, 4),
        "digest": digest.take(),
    }
    return {**row, "blocks": blocks.take()} if blocks else row


if __name__ == "__main__":
    assert compare  # imported before the methods of tensors are watched
    main()
