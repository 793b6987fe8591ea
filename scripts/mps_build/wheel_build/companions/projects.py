"""The companions: where each is developed, what its build is given, what its wheel must hold."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from fnmatch import fnmatchcase

from ...common.recipe.model import Recipe, Variable

# What the build of a Mac wheel sets for any project; the rest of a recipe's environment is torch's own.
_OF_THE_TARGET = frozenset({"MACOSX_DEPLOYMENT_TARGET", "_PYTHON_HOST_PLATFORM", "ARCHFLAGS"})
_NOT_THE_HOSTS = "never the library that happens to be on the host; torchvision reads images through Pillow"


@dataclass(frozen=True, slots=True, kw_only=True)
class Project:
    """One companion.

    Attributes:
        marks: files of which a source tree of this project has one.
        extensions: patterns of compiled members; a wheel needs one of each.
    """

    name: str
    repository: str
    marks: tuple[str, ...]
    extensions: tuple[str, ...]
    variables: tuple[Variable, ...]

    def missing_extensions(self, members: Iterable[str]) -> tuple[str, ...]:
        """Return the patterns that no member fits."""
        names = tuple(members)
        return tuple(pattern for pattern in self.extensions if not any(fnmatchcase(name, pattern) for name in names))


def _variables(rows: Mapping[str, tuple[str, str]]) -> tuple[Variable, ...]:
    return tuple(Variable(name=name, value=value, reason=reason) for name, (value, reason) in rows.items())


PROJECTS: Mapping[str, Project] = {
    "torchvision": Project(
        name="torchvision",
        repository="https://github.com/pytorch/vision.git",
        marks=("torchvision/__init__.py",),
        extensions=("torchvision/_C*.so",),
        variables=_variables(
            {
                "FORCE_MPS": ("1", "its MPS kernels, also where the building Mac shows no GPU (a virtual machine)"),
                "FORCE_CUDA": ("0", "no CUDA on macOS"),
                "TORCHVISION_USE_PNG": ("0", _NOT_THE_HOSTS),
                "TORCHVISION_USE_JPEG": ("0", _NOT_THE_HOSTS),
                "TORCHVISION_USE_WEBP": ("0", _NOT_THE_HOSTS),
                "TORCHVISION_USE_NVJPEG": ("0", "no CUDA on macOS"),
                "TORCHVISION_USE_FFMPEG": ("0", "never the FFmpeg that happens to be on the host"),
                "TORCHVISION_USE_VIDEO_CODEC": ("0", "no CUDA on macOS"),
            }
        ),
    ),
    "torchaudio": Project(
        name="torchaudio",
        repository="https://github.com/pytorch/audio.git",
        marks=("src/torchaudio/__init__.py", "torchaudio/__init__.py"),
        extensions=("torchaudio/lib/*torchaudio*.so",),
        variables=_variables(
            {
                "USE_CUDA": ("0", "no CUDA on macOS"),
                "USE_OPENMP": ("0", "a second OpenMP beside torch's would be loaded"),
                "USE_FFMPEG": ("0", "its build downloads FFmpeg; torchcodec has taken its place"),
                "BUILD_SOX": ("0", "its build downloads SoX, which a Mac does not have when it runs"),
                "BUILD_CPP_TEST": ("0", "no C++ tests in a wheel"),
                # Without it the audit's P5 speaks, as it does of the official torchaudio 2.6.0.
                "LDFLAGS": ("-Wl,-rpath,@loader_path", "its second library finds the first one beside it"),
            }
        ),
    ),
}


def target_variables(recipe: Recipe) -> tuple[Variable, ...]:
    """Return what a recipe's environment says of the Mac that the wheel is for."""
    return tuple(variable for variable in recipe.environment if variable.name in _OF_THE_TARGET)
