"""Code that is kept between runs, and linked: a foreign, cut or changed entry is made anew, and never run."""

from __future__ import annotations

import struct
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

pytest.importorskip("llvmlite")

from mps_build.inspection.limits import Malformed
from mps_build.kernels.code.compiled import Code
from mps_build.kernels.execution.store import Store
from mps_build.kernels.machine.link import Image
from small_kernels import compiled, doubled

GOOD = compiled(doubled())


@pytest.fixture
def store(tmp_path: Path) -> Store:
    return Store(tmp_path / "code", "version")


def test_code_is_kept_for_its_user_alone(store: Store) -> None:
    assert isinstance(GOOD, Code)
    store.save(b"bits", GOOD)

    path = store.path(b"bits")
    assert store.load(b"bits") == GOOD
    assert [each.stat().st_mode & 0o777 for each in (path, path.parent, path.parent.parent)] == [0o600, 0o700, 0o700]


def _changed(path: Path, at: int) -> None:
    data = bytearray(path.read_bytes())
    data[at] ^= 1
    path.write_bytes(bytes(data))


@pytest.mark.parametrize(
    "change",
    [
        lambda path, other: path.write_bytes(b""),
        lambda path, other: path.write_bytes(path.read_bytes()[:-1]),
        lambda path, other: path.write_bytes(path.read_bytes() + b"x"),
        lambda path, other: _changed(path, 3),
        lambda path, other: _changed(path, 40),
        lambda path, other: _changed(path, -1),
        lambda path, other: path.write_bytes(other.read_bytes()),
        lambda path, other: path.chmod(0o666),
        lambda path, other: (path.unlink(), path.symlink_to(other)),
        lambda path, other: (path.unlink(), subprocess.run(["mkfifo", path], check=True)),
        lambda path, other: (path.unlink(), path.mkdir()),
    ],
)
def test_an_entry_that_is_not_whole_or_not_its_own_is_made_anew(store: Store, change: Callable[..., object]) -> None:
    assert isinstance(GOOD, Code)
    for bits in (b"bits", b"other"):
        store.save(bits, GOOD)

    change(store.path(b"bits"), store.path(b"other"))

    assert store.load(b"bits") is None
    assert store.load(b"other") == GOOD


def test_every_byte_of_the_bitcode_is_in_the_key(store: Store) -> None:
    assert len({store.key(each) for each in (b"", b"a", b"b", b"ab", b"a\0")}) == 5
    assert Store(Path("x"), "v1").key(b"2") != Store(Path("x"), "v2").key(b"2")


# Object code


def test_object_code_that_needs_another_name_is_not_linked() -> None:
    import llvmlite.binding as llvm
    from mps_build.kernels.code import compiler

    text = "declare i32 @system(ptr)\ndefine void @rt_entry(ptr %a) {\n  %r = call i32 @system(ptr %a)\n  ret void\n}"
    compiler.host_target()
    image = Image(compiler.compile_module(llvm.parse_assembly(text)))

    with pytest.raises(Malformed, match="it calls system"):
        image.linked(0x5B0000000000, {"rt_exp": 1}, "rt_entry")
    assert image.linked(0x5B0000000000, {"system": 1}, "rt_entry")[1] >= 0x5B0000000000


def test_object_code_that_is_cut_or_changed_is_no_crash() -> None:
    assert isinstance(GOOD, Code)
    names = {"rt_entry": 1}
    for at in range(0, len(GOOD.objectcode), 7):
        for data in (GOOD.objectcode[:at], GOOD.objectcode[:at] + b"\xff\xff" + GOOD.objectcode[at + 2 :]):
            try:
                Image(data).linked(0x5B0000000000, names, "rt_entry")
            except Malformed:
                continue


@pytest.mark.parametrize("near", [True, False])
def test_arm_code_is_linked_as_its_architecture_says(near: bool) -> None:
    """Read back with LLVM's disassembler's rules: a far call goes by way of a stub that holds the address."""
    import llvmlite.binding as llvm

    llvm.initialize_all_targets()
    llvm.initialize_all_asmprinters()
    machine = llvm.Target.from_triple("aarch64-unknown-linux-gnu").create_target_machine(
        cpu="generic", opt=0, codemodel="large", jit=True
    )
    text = (
        'target triple = "aarch64-unknown-linux-gnu"\ndeclare float @rt_exp(float)\n'
        "define void @rt_entry(ptr %a, ptr %i) {\n  %v = load float, ptr %a\n  %e = call float @rt_exp(float %v)\n"
        "  %s = fadd float %e, 0x3FB99999A0000000\n  store float %s, ptr %a\n  ret void\n}"
    )
    module_ = llvm.parse_assembly(text)
    base = 0x5B0000000000
    target = base + 0x100000 if near else 0x7F0000001230
    image = Image(machine.emit_object(module_))

    code, entry = image.linked(base, {"rt_exp": target}, "rt_entry")

    words = struct.unpack(f"<{len(code) // 4}I", code)
    (call,) = [at for at, word in enumerate(words) if word >> 26 == 0b100101]
    offset = (words[call] & 0x3FFFFFF) - (1 << 26 if words[call] & 0x2000000 else 0)
    goes_to = base + 4 * (call + offset)
    if near:
        assert goes_to == target
    else:
        at = (goes_to - base) // 4
        assert words[at : at + 2] == (0x58000050, 0xD61F0200)
        assert words[at + 2] | words[at + 3] << 32 == target
    assert entry == base
