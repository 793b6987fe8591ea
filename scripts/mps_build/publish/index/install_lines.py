"""What a user writes to install one set: for pip, for uv's project file, and for conda's environment file."""

from __future__ import annotations

from collections.abc import Callable

from mps_build.common.wheels.wheel_file import MatchedSet, WheelFile

INDEX = "mps-build"
MAC = "sys_platform == 'darwin' and platform_machine == 'arm64'"


def pip_lines(address: str) -> str:
    """Return the two commands; `address` is the set's folder, with a slash at its end.

    >>> print(pip_lines("https://example.org/sets/torch-2.6.0-cp312/"), end="")
    pip install --no-deps --index-url https://example.org/sets/torch-2.6.0-cp312/simple/ \
-r https://example.org/sets/torch-2.6.0-cp312/requirements.txt
    pip install -r https://example.org/sets/torch-2.6.0-cp312/dependencies.txt
    """
    return (
        f"pip install --no-deps --index-url {address}simple/ -r {address}requirements.txt\n"
        f"pip install -r {address}dependencies.txt\n"
    )


def uv_lines(matched: MatchedSet, address: str) -> str:
    """Return the lines of a pyproject.toml: an explicit index serves nothing but what is given to it.

    Elsewhere than on Apple silicon the same project takes the official wheels, from the usual index:
    https://docs.astral.sh/uv/concepts/projects/dependencies/#multiple-sources
    """
    pins = "".join(f'    "{each.name}=={each.version}; {MAC}",\n' for each in matched.wheels)
    sources = "".join(f'{each.name} = [{{ index = "{INDEX}", marker = "{MAC}" }}]\n' for each in matched.wheels)
    return (
        f"[project]\ndependencies = [\n{pins}]\n\n"
        f'[[tool.uv.index]]\nname = "{INDEX}"\nurl = "{address}simple/"\nexplicit = true\n\n'
        f"[tool.uv.sources]\n{sources}"
    )


def conda_lines(matched: MatchedSet, wheel_address: Callable[[WheelFile], str]) -> str:
    """Return an environment.yml whose pip section names each wheel by address and hash.

    pip holds an index of conda's pip section for everything it installs, so no index is named there.
    """
    python = matched.torch.interpreter.removeprefix("cp")
    rows = "".join(f'      - "{each.name} @ {wheel_address(each)}#sha256={each.sha256}"\n' for each in matched.wheels)
    return f"dependencies:\n  - python={python[0]}.{python[1:].rstrip('t')}\n  - pip\n  - pip:\n{rows}"
