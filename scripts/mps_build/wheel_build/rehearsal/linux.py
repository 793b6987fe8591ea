"""Debian's tree of a release on Linux: configured, patched files compiled, and on to a wheel that computes."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path

from mps_build.common.environment import Toolchain
from mps_build.common.errors import CompileError
from mps_build.common.json_text import read_json
from mps_build.common.process import Command, CommandFailed, run_logged
from mps_build.common.receipts import StepResult
from mps_build.common.recipe.model import Gate, Recipe, Variable
from mps_build.common.wheels.pip_call import limited_pip, run_pip
from mps_build.common.workspace import remove_tree

from ..backend import build_folder
from ..steps.compile_wheel import build_command, compile_wheel
from ..steps.finish_wheel import bill_of_materials, finish_wheel
from ..wide_headers import TORCH_PYTHON, wide_header_lines
from .chroot import Chroot
from .debian_source import fetch_libtorch, place_libtorch
from .session import Place, Prepared, Rehearsal
from .source import Origin, debian_place, debian_root, debian_tree, git_tree, host_place

_SMOKE = Path(__file__).with_name("smoke.py")
# Variables that mean something to a Mac only.
_OF_A_MAC = frozenset(
    {
        "MACOSX_DEPLOYMENT_TARGET",
        "_PYTHON_HOST_PLATFORM",
        "ARCHFLAGS",
        "USE_PYTORCH_METAL_EXPORT",
        "USE_COREML_DELEGATE",
        "SDKROOT",
        "DEVELOPER_DIR",
    }
)
_NOT_IN_DEBIAN = "Debian's tree is without third_party, so what comes from there is off or the system's"
_SYSTEM_LIBRARIES: Mapping[str, tuple[str, str]] = {
    # setup.py takes any text for yes: without it, it would ask git for submodules that are not there.
    "USE_SYSTEM_LIBS": ("ON", _NOT_IN_DEBIAN),
    "ONNX_NAMESPACE": ("onnx", "the name in Debian's own libonnx"),
    "BLAS": ("Generic", "Debian's BLAS, whichever stands behind libblas"),
    "GENERIC_BLAS_LIBRARIES": ("blas", "the same"),
    "USE_CCACHE": ("0", "a rehearsal's figures are those of the compiler"),
    "USE_OPENMP": ("0", "clang without its libomp would link gcc's libgomp and fail at import"),
}
_OFF = (
    "USE_CUDA USE_ROCM USE_XPU USE_DISTRIBUTED USE_TENSORPIPE USE_GLOO USE_MPI USE_MKLDNN USE_KINETO USE_FBGEMM "
    "USE_XNNPACK USE_PYTORCH_QNNPACK USE_QNNPACK USE_NNPACK USE_ITT USE_NUMA USE_VULKAN "
    "USE_FLASH_ATTENTION USE_MEM_EFF_ATTENTION USE_MAGMA BUILD_BINARY"
)


def rehearse_linux(rehearsal: Rehearsal, *, origin: Origin, wheel: bool, mirror: str | None) -> Path | None:
    """Run the rehearsal; return the wheel, if one was requested."""
    console = rehearsal.console
    recipe = linux_recipe(rehearsal.recipe, debian=origin == "debian")
    toolchain, lines = Toolchain(name="host"), ""
    if origin == "debian":
        with console.step("Debian root"):
            chroot = debian_root(rehearsal, mirror=mirror)
            place = debian_place(rehearsal, chroot)
        with console.step("Source and patches"):
            tree, source = debian_tree(rehearsal, chroot)
            toolchain = clang_toolchain(against_gcc=wheel)
            if wheel:
                libtorch = _libtorch(rehearsal, chroot)
                place_libtorch(libtorch, tree.root)
                environment = overlaid(recipe.environment, split_variables(libtorch))
                recipe = recipe.model_copy(update={"environment": environment})
                lines = RELOCATABLE + wide_header_lines((TORCH_PYTHON,), rehearsal.workspace.root)
    else:
        with console.step("Source and patches"):
            place = host_place(rehearsal)
            tree, source = git_tree(rehearsal)
            lines = "set(CMAKE_EXPORT_COMPILE_COMMANDS ON)\n"  # PyTorch does so itself
    with console.step("Environment"):
        ready = rehearsal.environment(recipe, tree, source, place=place, toolchain=toolchain)
    with console.step("Configure"):
        receipt = rehearsal.configure(ready, lines=lines)
        rehearsal.note(
            "configure",
            "USE_MPS is OFF, as expected on Linux",
            "CMake accepts this tree and this environment; it does not show that MPS is enabled on a Mac",
            receipt,
        )
    if not wheel:
        with console.step("Patched files"):
            rehearsal.compile_patched(ready)
        return None
    with console.step("Wheel"):
        made = _wheel(rehearsal, ready)
    with console.step("Smoke test"):
        _smoke(rehearsal, ready, made, place=place)
    return made


def _libtorch(rehearsal: Rehearsal, chroot: Chroot) -> Path:
    made = fetch_libtorch(
        rehearsal.recipe.version,
        chroot=chroot,
        folder=rehearsal.workspace.root,
        ledger=rehearsal.ledger,
        log=rehearsal.log("libtorch"),
        reporter=rehearsal.console,
    )
    rehearsal.console.done()
    return made


def _wheel(rehearsal: Rehearsal, ready: Prepared) -> Path:
    """Return the finished wheel, by the steps of build_wheel."""
    workspace, backend, tree = rehearsal.workspace, ready.recipe.backend, ready.tree
    output = workspace.root / "compiled"
    command = build_command(
        backend,
        python=ready.python,
        source=tree.root,
        build=build_folder(backend, source=tree.root, build=workspace.build),
        output=output,
        environ=ready.environ,
        overrides=workspace.root / "overrides.cmake",
    )

    def run() -> StepResult:
        log = rehearsal.log("compile_wheel")
        return StepResult(
            files=(compile_wheel(ready.wrap(command), output=output, log=log, reporter=rehearsal.console),)
        )

    configured = next(each for each in reversed(rehearsal.ledger.receipts) if each.step == "configure")
    compiled = rehearsal.ledger.run(
        "compile_wheel", version=1, inputs={"previous": configured.digest, "argv": command.argv}, action=run
    )
    bill = bill_of_materials(
        name=ready.recipe.wheel.distribution,
        version=ready.recipe.version,
        commit=tree.commit,
        origin=tree.origin,
        submodules={},
        patches={},
        tools=dict(ready.tools),
        bundled={},
    )
    finished = workspace.root / "finished"

    def finish() -> StepResult:
        remove_tree(finished)
        raw = next(output.glob("*.whl"))
        made = finish_wheel(raw, output=finished, epoch=tree.epoch, bill=bill)
        return StepResult(files=(made.path,), facts={"size": made.size, "sha256": made.sha256})

    rehearsal.ledger.run("finish_wheel", version=1, inputs={"previous": compiled.digest, "bill": bill}, action=finish)
    path = next(finished.glob("*.whl"))
    rehearsal.note(
        "wheel",
        path.name,
        "the bindings compile, link and pack by this recipe's steps; its libtorch is Debian's, not a Mac's",
        compiled,
    )
    return path


def _smoke(rehearsal: Rehearsal, ready: Prepared, wheel: Path, *, place: Place) -> None:
    """Install the wheel into a venv of its own and compute with it."""
    venv = rehearsal.workspace.root / "smoke"
    result = rehearsal.workspace.root / "smoke.json"

    def run() -> StepResult:
        remove_tree(venv)
        result.unlink(missing_ok=True)
        python = str(venv / "bin" / "python")
        base = str(place.interpreter)
        # The build's PYTHONPATH must not help the wheel.
        environ = {name: value for name, value in ready.environ.items() if name != "PYTHONPATH"} | {"PATH": _PATH}
        log, folder = rehearsal.log("smoke"), rehearsal.workspace.root
        try:
            made = Command(argv=(base, "-m", "venv", str(venv)), cwd=folder, environ=environ)
            run_logged(ready.wrap(made), log=log)
            install = (*limited_pip(python, beside=venv), "install", "-q", "--no-input", "numpy", str(wheel))
            fetched = Command(argv=install, cwd=folder, environ=environ)
            run_pip(fetched, log=log, tell=rehearsal.console.line, wrap=ready.wrap)
            computed = Command(argv=(python, "-I", str(_SMOKE), str(result)), cwd=folder, environ=environ)
            run_logged(ready.wrap(computed), log=log)
        except CommandFailed as failure:
            text = "\n".join(failure.tail[-8:])
            raise CompileError(
                f"the wheel was built, but does not work:\n{text}", hint=f"the whole output is in {failure.log}"
            ) from failure
        return StepResult(files=(result,), facts=read_json(result))

    inputs = {"previous": rehearsal.ledger.receipts[-1].digest, "script": _SMOKE.read_text(encoding="utf-8")}
    receipt = rehearsal.ledger.run("smoke", version=1, inputs=inputs, action=run)
    facts = receipt.facts
    rehearsal.note(
        "wheel computes",
        f"torch {facts['version']}: import, matmul, backward, {facts['steps']} SGD steps, torch.jit",
        "this wheel works on this machine's CPU; nothing about MPS",
        receipt,
    )


_PATH = "/usr/bin:/bin:/usr/sbin:/sbin"


# A macOS recipe as Linux can try it: what stays, what is left out, and why.


def linux_recipe(recipe: Recipe, *, debian: bool) -> Recipe:
    """Return the recipe with the environment and the gate that a Linux rehearsal has.

    The gate asks for USE_MPS *off*: PyTorch's CMakeLists turns it off by itself wherever no Apple SDK answers.
    """
    kept = tuple(variable for variable in recipe.environment if variable.name not in _OF_A_MAC)
    gate = Gate(use_mps=False, cxx_standard=recipe.gate.cxx_standard, openmp=False if debian else recipe.gate.openmp)
    environment = overlaid(kept, debian_variables()) if debian else kept
    return recipe.model_copy(update={"environment": environment, "gate": gate})


def debian_variables() -> tuple[Variable, ...]:
    """Return what a build of Debian's tree sets."""
    off = (Variable(name=name, value="0", reason=_NOT_IN_DEBIAN) for name in _OFF.split())
    own = (Variable(name=name, value=value, reason=why) for name, (value, why) in _SYSTEM_LIBRARIES.items())
    return (*off, *own)


def split_variables(libtorch: Path) -> tuple[Variable, ...]:
    """Return what compiles the bindings alone, against a libtorch that is there, and fast."""
    rows = {
        "BUILD_LIBTORCHLESS": ("ON", "upstream's split build: the bindings only"),
        "LIBTORCH_LIB_PATH": (str(libtorch), "the libtorch they are built against"),
    }
    own = (Variable(name=name, value=value, reason=why) for name, (value, why) in rows.items())
    return (*own, *unoptimised_variables())


def unoptimised_variables() -> tuple[Variable, ...]:
    """Return what has files compiled at -O0: they are compiled to be tried."""
    rows = {
        # Release always appends -O2 (cmake/public/utils.cmake), whatever the flags say; this type does not.
        "CMAKE_BUILD_TYPE": ("MinSizeRel", "the one build type whose optimisation level can be given"),
        "CMAKE_C_FLAGS_MINSIZEREL": ("-O0 -DNDEBUG", "a rehearsal is compiled, not measured"),
        "CMAKE_CXX_FLAGS_MINSIZEREL": ("-O0 -DNDEBUG", "a rehearsal is compiled, not measured"),
    }
    return tuple(Variable(name=name, value=value, reason=why) for name, (value, why) in rows.items())


def overlaid(below: Iterable[Variable], above: Iterable[Variable]) -> tuple[Variable, ...]:
    """Return both, where a name that both have is `above`'s."""
    return tuple({variable.name: variable for variable in (*below, *above)}.values())


def clang_toolchain(*, against_gcc: bool) -> Toolchain:
    """Return clang with a fast linker.

    Args:
        against_gcc: what it compiles is linked with what gcc made; clang from 18 on names some templates otherwise
            (https://github.com/llvm/llvm-project/issues/102443).
    """
    variables = {"CC": "clang", "CXX": "clang++", "LDFLAGS": "-fuse-ld=mold"}
    reasons = {"CC": "reads headers fastest", "CXX": "reads headers fastest", "LDFLAGS": "links in a second"}
    if against_gcc:
        variables["CXXFLAGS"] = "-fclang-abi-compat=17"
        reasons["CXXFLAGS"] = "names templates as the gcc that made libtorch does"
    return Toolchain(name="clang", variables=variables, reasons=reasons)


# Debian gives libraries versions and no rpaths; a wheel needs them by one name, beside each other.
RELOCATABLE = """\
set(HAVE_SOVERSION OFF CACHE BOOL "one copy of each library in the wheel" FORCE)
function(mps_build_relocatable)
  foreach(each IN ITEMS torch_python shm nnapi_backend torch_global_deps torch torch_cpu c10)
    if(TARGET ${each})
      get_target_property(imported ${each} IMPORTED)
      if(NOT imported)
        set_target_properties(${each} PROPERTIES INSTALL_RPATH "$ORIGIN")
      endif()
    endif()
  endforeach()
endfunction()
cmake_language(DEFER DIRECTORY "${CMAKE_SOURCE_DIR}" CALL mps_build_relocatable)
"""
