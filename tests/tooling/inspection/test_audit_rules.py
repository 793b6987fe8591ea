"""Each rule of the audit, by a small torch wheel that is right but for one thing."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

import pytest
from mps_build.inspection.audit import Audit, Expectation, audit_wheel
from mps_build.inspection.audit.rules import ALL, archives, binaries, names, torch
from mps_build.inspection.audit.rules.rule import Rule
from small_wheels import COMMIT, X86_64, Image, macho, metallib, record_of, torch_cpu, torch_files, write_wheel

CPU = "torch/lib/libtorch_cpu.dylib"
SHM = "torch/lib/libshm.dylib"
SYSTEM = ("/usr/lib/libSystem.B.dylib", "strong")
STRICT_NAME = "torch-2.15.0-cp312-cp312-macosx_14_0_arm64.whl"


def audited(folder: Path, changed: Mapping[str, bytes | None], name: str = STRICT_NAME, **options: object) -> Audit:
    """Audit a right wheel with some files changed, or left out (None); RECORD is made to fit."""
    files = {member: data for member, data in {**torch_files(), **changed}.items() if data is not None}
    return audit_wheel(write_wheel(folder, files, name=name), **options)  # type: ignore[arg-type]


def errors(audit: Audit) -> set[str]:
    return {finding.rule for finding in audit.findings if finding.level == "error"}


def warnings(audit: Audit) -> set[str]:
    return {finding.rule for finding in audit.findings if finding.level == "warning"}


def library(**changes: object) -> bytes:
    return macho(replace(Image(install_name="@rpath/libshm.dylib", rpaths=("@loader_path",)), **changes))  # type: ignore[arg-type]


def cpu(**changes: object) -> bytes:
    return macho(replace(torch_cpu(), **changes))  # type: ignore[arg-type]


def cpu_with_sections(**sections: bytes | None) -> bytes:
    whole = {**torch_cpu().sections, **sections}
    return cpu(sections={name: data for name, data in whole.items() if data is not None})


def test_a_right_wheel_is_accepted_without_a_finding(tmp_path: Path) -> None:
    for quick in (False, True):
        audit = audited(tmp_path, {}, quick=quick)

        assert audit.verdict == "accepted"
        assert audit.findings == ()
        assert audit.kind == "aot"


LIBRARY_FAULTS = {
    "A0": b"\x7fELF" + bytes(100),
    "A1": b"\xca\xfe\xba\xbe" + bytes(100),
    "A2": library()[:-1500],
    "A3": library(cpu=X86_64),
    "V1": library(platform=2),
    "V3": library(minos=(15, 0)),
    "P1": library(rpaths=("/opt/homebrew/lib",)),
    "P2": library(install_name="/usr/local/lib/libshm.dylib"),
    "P3": library(install_name="@rpath/libother.dylib"),
    "P4": library(dependencies=(("/opt/homebrew/lib/libomp.dylib", "strong"),)),
    "P5": library(dependencies=(("@rpath/libgone.dylib", "strong"),)),
    "P6": library(rpaths=("@loader_path", "@loader_path")),
    "S1": library(is_signed=False),
    "S3": library().replace(b"\0" * 64, b"\0" * 63 + b"\1", 1),
}


@pytest.mark.parametrize("rule", LIBRARY_FAULTS)
def test_a_library_breaks_one_rule(rule: str, tmp_path: Path) -> None:
    audit = audited(tmp_path, {SHM: LIBRARY_FAULTS[rule]})

    assert audit.verdict == "rejected"
    assert rule in errors(audit)
    assert errors(audit) <= {rule, "S1", "P5"}  # cut off: no signature at the end; no Mach-O: not to be found


HEADER_RULES = [rule for rule in LIBRARY_FAULTS if rule != "S3"]


@pytest.mark.parametrize("rule", HEADER_RULES)
def test_what_a_header_tells_is_found_without_reading_on(rule: str, tmp_path: Path) -> None:
    audit = audited(tmp_path, {SHM: LIBRARY_FAULTS[rule]}, quick=True)

    assert rule in errors(audit)


CPU_FAULTS: dict[str, bytes] = {
    "V5": cpu(sdk=(15, 5)),
    "O1": cpu(dependencies=tuple(each for each in torch_cpu().dependencies if "omp" not in each[0])),
    "B1": cpu(dependencies=tuple(each for each in torch_cpu().dependencies if "Accelerate" not in each[0])),
    "M1": cpu(dependencies=tuple(each for each in torch_cpu().dependencies if "Graph" not in each[0])),
    "M3": cpu_with_sections(metal_basic=metallib(os=(14, 0), functions=20)),
    "M5": cpu_with_sections(metal_basic=bytes(4000)),
    "M6": cpu_with_sections(metal_basic=metallib(os=(14, 0), platform=0x8002)),
    "M7": cpu_with_sections(metal_basic=metallib(os=(14, 0)) + bytes(16)),
    "M8": cpu(exports=(b"_other",)),
    "M9": cpu_with_sections(__cstring=b"COMMIT_SHA\0" + COMMIT.encode() + b"\0 -DUSE_PTHREADPOOL -O2\0"),
    "M10": cpu_with_sections(metal_basic=None),
    "M12": cpu_with_sections(metal_40=None),
    "G2": cpu_with_sections(__cstring=b"\0COMMIT_SHA\0" + b"a" * 40 + b"\0 -DUSE_MPS -O2\0"),
}


@pytest.mark.parametrize("rule", CPU_FAULTS)
def test_libtorch_cpu_breaks_one_rule(rule: str, tmp_path: Path) -> None:
    audit = audited(tmp_path, {CPU: CPU_FAULTS[rule]})

    assert errors(audit) == {rule}


def test_a_framework_that_is_loaded_strongly_is_no_weak_one(tmp_path: Path) -> None:
    strong = tuple((path, "strong") for path, _kind in torch_cpu().dependencies)
    audit = audited(tmp_path, {CPU: cpu(dependencies=strong)})

    assert errors(audit) == {"M1"}
    assert sum(finding.rule == "M1" for finding in audit.findings) == 3


@pytest.mark.parametrize(("os", "expected"), [((26, 1), {"M12"}), ((26, 2), set()), ((26, 4), {"M12"})])
def test_metal_4_kernels_are_compiled_for_the_macos_that_opens_them(
    os: tuple[int, int], expected: set[str], tmp_path: Path
) -> None:
    audit = audited(tmp_path, {CPU: cpu_with_sections(metal_40=metallib(os=os))})

    assert errors(audit) == expected


def test_basic_kernels_may_not_want_more_than_the_tag_claims(tmp_path: Path) -> None:
    audit = audited(tmp_path, {CPU: cpu_with_sections(metal_basic=metallib(os=(15, 0)))})

    assert errors(audit) == {"M10"}
    assert "15.0" in audit.findings[0].evidence


def test_what_was_requested_lifts_the_missing_kernels(tmp_path: Path) -> None:
    files = {CPU: cpu(sections={"__cstring": torch_cpu().sections["__cstring"]})}

    plain = audited(tmp_path, files)
    jit = audited(tmp_path, files, expectation=Expectation(allow_jit_shaders=True))
    no_metal4 = audited(tmp_path, {CPU: cpu_with_sections(metal_40=None)}, expectation=Expectation(without_metal4=True))

    assert (plain.kind, errors(plain)) == ("jit", {"M10", "M12"})
    assert (jit.verdict, warnings(jit)) == ("accepted", {"M10", "M12"})
    assert (no_metal4.kind, no_metal4.verdict, warnings(no_metal4)) == ("aot", "accepted", {"M12"})


def test_a_wheel_without_metal_is_off(tmp_path: Path) -> None:
    audit = audited(tmp_path, {CPU: cpu(dependencies=(SYSTEM,), sections={}, exports=(), undefined=())})

    assert audit.kind == "off"
    assert {"M1", "M8", "M9", "M10", "B1", "O1"} <= errors(audit)


NAMES = {
    "torch-2.15.0-cp313-cp313-macosx_14_0_arm64.whl": {"T2", "T5"},
    "torch-2.15.0-cp312-cp312-macosx_11_0_arm64.whl": {"T2", "V3", "M10"},
    "torch-2.15.0-cp312-cp312-macosx_14_0_x86_64.whl": {"T1", "T2"},
    "torch-2.15.0-cp312-cp312-macosx_14_0_universal2.whl": {"T1", "T2"},
    "torch-2.15.0-cp312-cp312-macosx_14_3_arm64.whl": {"T1", "T2"},
    "torch-2.15.0-1-cp312-cp312-macosx_14_0_arm64.whl": {"T3"},
    "torch-2.15.0-cp312-cp312t-macosx_14_0_arm64.whl": {"T2", "T5"},
    "torch-2.14.0-cp312-cp312-macosx_14_0_arm64.whl": {"N2", "N3", "N4"},
}


@pytest.mark.parametrize("name", NAMES)
def test_a_renamed_wheel_contradicts_itself(name: str, tmp_path: Path) -> None:
    renamed = write_wheel(tmp_path, torch_files()).rename(tmp_path / name)

    assert errors(audit_wheel(renamed)) == NAMES[name]


def test_a_name_that_is_no_wheels_is_rejected(tmp_path: Path) -> None:
    renamed = write_wheel(tmp_path, torch_files()).rename(tmp_path / "torch.whl")

    assert "N1" in errors(audit_wheel(renamed))


def test_version_file_and_metadata_must_agree_with_the_name(tmp_path: Path) -> None:
    info = "torch-2.15.0.dist-info"
    version = audited(tmp_path, {"torch/version.py": f"__version__ = '2.15.1'\ngit_version = '{COMMIT}'\n".encode()})
    metadata = audited(tmp_path, {f"{info}/METADATA": b"Metadata-Version: 2.4\nName: torch\nVersion: 2.15.1\n\n"})

    assert errors(version) == {"N4"}
    assert errors(metadata) == {"N3"}


def test_required_files_must_be_there_and_run(tmp_path: Path) -> None:
    assert errors(audited(tmp_path, {"torch/bin/torch_shm_manager": None})) == {"F1"}
    assert errors(audited(tmp_path, {"torch/lib/libtorch_global_deps.dylib": None})) == {"F1"}
    assert errors(audited(tmp_path, {"torch/lib/libomp.dylib": None})) == {"P5", "O1"}
    assert errors(audited(tmp_path, {"torch/_C.cpython-312-darwin.so": None})) == {"F1", "T5"}
    headers = {member: None for member in torch_files() if member.endswith("op7_mps_dispatch.h") or "op1" in member}
    assert errors(audited(tmp_path, headers)) == {"M4"}


def test_the_commit_is_the_one_requested(tmp_path: Path) -> None:
    other = "b" * 40

    assert errors(audited(tmp_path, {}, expectation=Expectation(commit=COMMIT))) == set()
    assert errors(audited(tmp_path, {}, expectation=Expectation(commit=other))) == {"G2"}
    edited = f"__version__ = '2.15.0'\ngit_version = '{other}'\n".encode()
    assert errors(audited(tmp_path, {"torch/version.py": edited})) == {"G2"}
    assert errors(audited(tmp_path, {"torch/version.py": b"__version__ = '2.15.0'\ngit_version = 'Unknown'\n"})) == {
        "G2"
    }


def test_record_must_list_what_is_there(tmp_path: Path) -> None:
    files, info = torch_files(), "torch-2.15.0.dist-info"
    parts = {
        f"{info}/METADATA": b"Metadata-Version: 2.4\nName: torch\nVersion: 2.15.0\n\n",
        f"{info}/WHEEL": b"Wheel-Version: 1.0\nTag: cp312-cp312-macosx_14_0_arm64\n",
    }
    right = record_of({**files, **parts}, info)
    row = right.splitlines(keepends=True)[0]
    spoiled = {
        "R1": right + row,
        "R2": right.replace(row, b""),
        "R3": right + b"torch/gone.py,sha256=abc,3\n",
        "R4": right.replace(b"sha256=", b"sha256=A", 1),
    }
    for rule, record in spoiled.items():
        wheel = write_wheel(tmp_path, {**files, **parts}, record=record)
        assert errors(audit_wheel(wheel)) == {rule}
    for row_of_init in (
        b"torch/__init__.py,md5=abc,34\n",
        b"torch/__init__.py,,\n",
        b"torch/__init__.py,sha256=abc,34\n",
    ):
        lines = [
            row_of_init if line.startswith(b"torch/__init__.py,") else line for line in right.splitlines(keepends=True)
        ]
        wheel = write_wheel(tmp_path, {**files, **parts}, record=b"".join(lines))
        assert errors(audit_wheel(wheel)) == {"R4"}


def test_a_wheel_without_record_is_rejected(tmp_path: Path) -> None:
    audit = audit_wheel(write_wheel(tmp_path, torch_files(), record=b""))

    assert "R2" in errors(audit)


def test_paths_of_the_builder_are_reported_and_do_not_reject(tmp_path: Path) -> None:
    cmake = b'set(ATEN_INCLUDE_DIR "/private/var/folders/n6/T/tmpfrkrt6yf/torch/include")\n'
    audit = audited(
        tmp_path, {"torch/share/cmake/ATen/ATenConfig.cmake": cmake, SHM: library(objects=(b"/Users/runner/a.o",))}
    )

    assert audit.verdict == "accepted"
    assert {finding.member for finding in audit.findings if finding.rule == "I1"} == {
        "torch/share/cmake/ATen/ATenConfig.cmake",
        SHM,
    }


def test_cmakes_usual_places_are_no_paths_of_the_builder(tmp_path: Path) -> None:
    cmake = (
        b'find_path(X /opt/rocm /opt/intel/oneapi /usr/local/cuda)\nset(Y "${PREFIX}/tmp/x" @PREFIX@/opt/homebrew)\n'
    )
    audit = audited(tmp_path, {"torch/share/cmake/Caffe2/FindX.cmake": cmake})

    assert audit.findings == ()


def test_a_compiled_file_under_a_plain_name_is_found(tmp_path: Path) -> None:
    audit = audited(tmp_path, {"torch/lib/plugin": library(cpu=X86_64, install_name=None)})

    assert errors(audit) == {"A3"}


def test_the_official_profile_excuses_exactly_what_is_known(tmp_path: Path) -> None:
    old = {
        **torch_files("2.11.0"),
        CPU: cpu(minos=(11, 0), sdk=(14, 5), sections={**torch_cpu().sections, "metal_40": metallib(os=(26, 2))}),
    }
    old[CPU] = cpu(
        minos=(11, 0), sdk=(14, 5), sections={k: v for k, v in torch_cpu().sections.items() if k != "metal_40"}
    )
    libraries = {
        member: data
        for member, data in torch_files(minos=(11, 0)).items()
        if member.endswith((".dylib", ".so", "manager"))
    }
    files = {**old, **{member: data for member, data in libraries.items() if member != CPU}}
    wheel = write_wheel(tmp_path, files, name="torch-2.11.0-cp312-cp312-macosx_11_0_arm64.whl")

    strict, official = audit_wheel(wheel), audit_wheel(wheel, profile="official")
    assert errors(strict) == {"M10"}
    assert (official.verdict, warnings(official)) == ("accepted", {"M10"})
    assert "official" in official.findings[0].reason

    files[SHM] = library(minos=(11, 0), rpaths=("/Users/runner/work/_temp/anaconda/envs/wheel_py312/lib",))
    wheel = write_wheel(tmp_path, files, name="torch-2.11.0-cp312-cp312-macosx_11_0_arm64.whl")
    assert errors(audit_wheel(wheel, profile="official")) == {"P1"}


def test_another_wheel_is_held_to_the_generic_rules(tmp_path: Path) -> None:
    name = "thing-1.0-cp312-cp312-macosx_14_0_arm64.whl"
    metadata = b"Metadata-Version: 2.4\nName: thing\nVersion: 1.0\nRequires-Dist: torch>=2.14\n\n"
    user = Image(file_type=8, dependencies=(("@rpath/libtorch_cpu.dylib", "strong"), SYSTEM))
    files = {"thing/_C.so": macho(user), "thing-1.0.dist-info/METADATA": metadata}

    right = audit_wheel(write_wheel(tmp_path, files, name=name))
    alone = audit_wheel(
        write_wheel(
            tmp_path, {**files, "thing-1.0.dist-info/METADATA": metadata.replace(b"torch", b"other")}, name=name
        )
    )
    newer = audit_wheel(write_wheel(tmp_path, {**files, "thing/_C.so": macho(replace(user, minos=(15, 0)))}, name=name))

    assert (right.kind, right.verdict, right.findings) == ("generic", "accepted", ())
    assert errors(alone) == {"P5"}
    assert errors(newer) == {"V3"}


def test_a_recipe_declares_what_its_wheel_holds(tmp_path: Path) -> None:
    name = "sample-1.0-cp312-cp312-macosx_14_0_arm64.whl"
    files = {
        "sample/lib/libcore.dylib": library(install_name="@rpath/libcore.dylib"),
        "sample/version.py": f"git_version = '{COMMIT}'\n".encode(),
    }
    wheel = write_wheel(tmp_path, files, name=name)

    def judged(**declared: object) -> set[str]:
        return errors(audit_wheel(wheel, expectation=Expectation(distribution="sample", **declared)))  # type: ignore[arg-type]

    assert judged(members=("sample/lib/libcore.dylib",), deployment_target="14.0", commit=COMMIT) == set()
    assert judged(members=("sample/lib/libgone.dylib",)) == {"F1"}
    assert judged(deployment_target="13.0") == {"T1"}
    assert judged(commit="c" * 40) == {"G2"}
    assert judged(metal_sections={"metal_basic": "14.0"}) == {"M10"}


@pytest.mark.parametrize(
    ("at", "value"), [(16, 0xFFFFFFFF), (20, 0xFFFFFFF0), (36, 0), (36, 0xFFFFFFF8), (96, 0xFFFFFFFF)]
)
def test_a_header_with_absurd_counts_is_reported_and_the_rest_is_audited(at: int, value: int, tmp_path: Path) -> None:
    data = library()
    absurd = data[:at] + value.to_bytes(4, "little") + data[at + 4 :]

    audit = audited(tmp_path, {SHM: absurd, "torch/lib/libc10.dylib": library(install_name="@rpath/libx.dylib")})

    assert {"A1", "P3"} <= errors(audit)
    assert any(finding.rule == "A1" and finding.member == SHM for finding in audit.findings)


def test_every_rule_that_is_written_is_applied_and_each_id_is_taken_once() -> None:
    modules = (archives, binaries, names, torch)
    written = [value for module in modules for value in vars(module).values() if isinstance(value, Rule)]

    assert {rule.id for rule in written} == {rule.id for rule in ALL}
    assert len({rule.id for rule in ALL}) == len(ALL)
    assert all(rule.reason for rule in ALL)
