"""The second wheel of a tree that is edited: built by what depends on the edit, packed by what changed."""

from __future__ import annotations

from pathlib import Path

from mps_build.common.reporter import Reporter

from .artifacts import BuildEnvironment, SourceTree
from .build_request import BuildRequest
from .ninja import run_build
from .steps.repack_wheel import files_of, make_commands, repack_wheel


def repacked(
    request: BuildRequest,
    *,
    tree: SourceTree,
    environment: BuildEnvironment,
    build: Path,
    overrides: Path,
    output: Path,
    log: Path,
    reporter: Reporter,
) -> Path | None:
    """Return the wheel, or None where there is no last one, or it would not hold the same members: then all is packed.

    Raises:
        CompileError: the edit does not compile.
    """
    last = sorted(output.glob("*.whl"))
    version = request.version(dirty=bool(tree.dirty))
    if request.profile != "develop" or len(last) != 1 or (version and last[0].name.split("-")[1] != version):
        return None
    commands = make_commands(
        request.recipe.backend,
        python=environment.python,
        source=tree.root,
        build=build,
        environ=environment.environ,
        overrides=overrides,
        jobs=request.compilers.jobs,
    )
    for number, command in enumerate(commands):
        run_build(command, log=log if number == 0 else log.with_suffix(f".{number}.log"), reporter=reporter)
    files = files_of(request.recipe.backend, source=tree.root, build=build, previous=last[0])
    if files is None:
        return None
    wheel, changed = repack_wheel(last[0], files, output=output)
    reporter.line(f"repacked: {len(changed)} of {len(files)} files")
    return wheel
