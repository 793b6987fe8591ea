"""A Debian root in a folder: how it is made, and how a command runs in it.

Mounts live in a private namespace of each command (`unshare --mount`), so nothing stays mounted,
whatever way the command ends.
"""

from __future__ import annotations

import os
import shutil
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from mps_build.common.errors import BuildEnvironmentError, DiskFull, HostError
from mps_build.common.process import FETCH_SECONDS, Command, CommandFailed, capture, run_logged
from mps_build.common.receipts import Ledger, StepResult
from mps_build.common.reporting import Reporter
from mps_build.common.workspace import remove_tree

FREE_BYTES = 8_000_000_000
_HOST_FILES = (Path("/etc/resolv.conf"), Path("/etc/hosts"))
# Seen by what works in a finished root, for pip behind a proxy of one's own; a package being installed writes it.
_CERTIFICATES = Path("/etc/ssl/certs/ca-certificates.crt")
_PASSED_ON = ("http_proxy", "https_proxy", "no_proxy", "HTTP_PROXY", "HTTPS_PROXY", "NO_PROXY")
# Beside PyTorch's own build dependencies: a compiler that reads headers fast, a fast linker, our tool's Python.
_PACKAGES = (
    "build-essential",
    "clang",
    "lld",
    "llvm",
    "mold",
    "ccache",
    "git",
    "patchelf",
    "python3-dev",
    "python3-venv",
    "zstd",
)
_ENTER = """
root=$1 folder=$2; shift 2
mount --bind /proc "$root/proc"; mount --bind /sys "$root/sys"; mount --rbind /dev "$root/dev"
while [ "$1" != -- ]; do
  if [ -d "$1" ]; then mkdir -p "$root$2"; else mkdir -p "$root${2%/*}"; [ -e "$root$2" ] || : > "$root$2"; fi
  mount --bind "$1" "$root$2"; shift 2
done
shift
exec chroot "$root" sh -ec 'cd "$1"; shift; exec "$@"' folder "$folder" "$@"
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Chroot:
    """A Debian root.

    Attributes:
        binds: folders seen inside at the same absolute path.
        placed: folders seen inside at another path, as (outside, inside).
    """

    root: Path
    binds: tuple[Path, ...] = ()
    placed: tuple[tuple[Path, Path], ...] = ()

    def command(
        self, argv: Sequence[str], *, cwd: Path = Path("/"), environ: Mapping[str, str] | None = None
    ) -> Command:
        """Return the command that runs `argv` inside, and sees only `environ` and what a network needs."""
        return self.inside(Command(argv=tuple(argv), cwd=cwd, environ={**inner_environ(), **(environ or {})}))

    def inside(self, command: Command) -> Command:
        """Return the command that runs `command`, with its folder and its whole environment, in here."""
        pairs = [(path, path) for path in (*_HOST_FILES, *self.binds)] + list(self.placed)
        words = [str(word) for outside, inner in pairs if outside.exists() for word in (outside, inner)]
        namespace = ("unshare", "--mount", "--propagation", "private")
        script = ("sh", "-ec", _ENTER, "enter", str(self.root), str(command.cwd or Path("/")), *words, "--")
        return Command(argv=(*namespace, *script, *command.argv), environ=command.environ)


def inner_environ() -> dict[str, str]:
    """Return the environment that every command inside starts from."""
    passed = {name: os.environ[name] for name in _PASSED_ON if name in os.environ}
    passed |= {
        name: value for name, value in os.environ.items() if name.startswith("PIP_") and name != "PIP_FIND_LINKS"
    }
    return {
        "PATH": "/usr/sbin:/usr/bin:/sbin:/bin",
        "HOME": "/root",
        "LC_ALL": "C.UTF-8",
        "TERM": "dumb",
        "DEBIAN_FRONTEND": "noninteractive",
        **passed,
    }


def check_host(folder: Path) -> None:
    """Refuse a host that cannot hold a root, with every reason at once.

    Raises:
        HostError: no Linux, no right to mount, or a program is missing.
        DiskFull: less is free than a root and a build take.
    """
    reasons = []
    if sys.platform != "linux":
        reasons.append(f"the rehearsal needs Linux, this is {sys.platform}")
    elif os.geteuid() != 0:
        reasons.append("root is needed to make a Debian root and mount in it (use a container or sudo)")
    tools = {"debootstrap": "debootstrap", "unshare": "util-linux", "dpkg-source": "dpkg-dev", "apt-get": "apt"}
    missing = {tool: package for tool, package in tools.items() if not shutil.which(tool, path=_search_path())}
    if missing:
        reasons.append(f"missing: {', '.join(missing)}")
    if reasons:
        packages = " ".join(missing.values())
        raise HostError(
            "; ".join(reasons), hint=f"on Debian or Ubuntu: apt-get install {packages}" if missing else None
        )
    existing = next(path for path in (folder, *folder.parents) if path.exists())
    free = shutil.disk_usage(existing).free
    if free < FREE_BYTES:
        raise DiskFull(
            f"{existing} has {free / 1e9:.1f} GB free, a root with a build takes {FREE_BYTES / 1e9:.0f} GB",
            hint="free some space, or set MPS_BUILD_WORK to a folder on another disk",
        )


def parse_mirrors(text: str) -> tuple[str, ...]:
    """Return the Debian archives that apt is configured to use, from `apt-get indextargets` (address, origin, label).

    >>> parse_mirrors("http://a.example/debian/|Debian|Debian\\nhttp://b.example/x/|Debian|Debian-Security\\n")
    ('http://a.example/debian/',)
    """
    rows = (line.split("|") for line in text.splitlines() if line.count("|") == 2)
    return tuple(dict.fromkeys(address for address, origin, label in rows if (origin, label) == ("Debian", "Debian")))


def find_mirror(chosen: str | None) -> str:
    """Return the Debian archive to take from: the caller's, else the one this host's apt uses.

    Raises:
        HostError: apt knows none (its lists were never fetched, or this is not Debian).
    """
    if chosen:
        return chosen
    form = "$(REPO_URI)|$(ORIGIN)|$(LABEL)"
    listed = capture(Command(argv=("apt-get", "indextargets", "--format", form, "Identifier: Packages")))
    mirrors = parse_mirrors(listed.stdout)
    if not mirrors:
        raise HostError(
            "apt on this host has no Debian archive configured",
            hint="`apt-get update` on a Debian host, or give one: --mirror ADDRESS",
        )
    return mirrors[0]


def make_root(
    *, root: Path, suite: str, mirror: Callable[[], str], ledger: Ledger, log: Path, reporter: Reporter
) -> Chroot:
    """Return the root with PyTorch's build dependencies, made only as far as it is not there yet.

    An interrupted bootstrap is done anew; an interrupted installation goes on.

    Args:
        mirror: called only when something must be fetched.

    Raises:
        BuildEnvironmentError: a package could not be had; `log` holds all.
    """
    chroot = Chroot(root=root)

    def bootstrap() -> StepResult:
        refuse_mounted(root)
        remove_tree(root)
        root.parent.mkdir(parents=True, exist_ok=True)
        reporter.started(f"Bootstrap Debian {suite}")
        argv = ("debootstrap", "--variant=minbase", suite, str(root), mirror())
        _work(Command(argv=argv, environ={**os.environ, "PATH": _search_path()}), log, reporter)
        return StepResult(trees=(root,))

    base = ledger.run("bootstrap", version=1, inputs={"suite": suite}, action=bootstrap)

    def install() -> StepResult:
        lines = [f"{kind} {mirror()} {suite} main\n" for kind in ("deb", "deb-src")]
        (root / "etc/apt/sources.list").write_text("".join(lines), encoding="utf-8")
        reporter.started("Install the build dependencies", unit="packages")
        apt = ("apt-get", "-y", "-q", "--no-install-recommends", "-o", "APT::Sandbox::User=root")
        for argv in (
            ("dpkg", "--configure", "-a"),
            (*apt, "update"),
            (*apt, "install", *_PACKAGES),
            (*apt, "build-dep", "pytorch"),
            (*apt, "clean"),
        ):
            _work(chroot.command(argv), log, reporter)
        return StepResult(trees=(root,))

    ledger.run("packages", version=1, inputs={"base": base.digest, "packages": list(_PACKAGES)}, action=install)
    return replace(chroot, binds=(_CERTIFICATES,))


def refuse_mounted(root: Path) -> None:
    """Refuse to remove a root in which something is still mounted: that would remove what is mounted there.

    Raises:
        HostError: naming each mount point.
    """
    text = Path("/proc/self/mountinfo").read_text(encoding="utf-8", errors="replace")
    points = [point for point in parse_mount_points(text) if point.startswith(f"{root}/")]
    if points:
        raise HostError(f"still mounted below {root}: {', '.join(points)}", hint=f"umount {' '.join(points)}")


def parse_mount_points(mountinfo: str) -> tuple[str, ...]:
    r"""Return the mount points of /proc/self/mountinfo, its octal escapes read.

    >>> parse_mount_points("22 1 0:20 / /a\\040b rw - proc proc rw")
    ('/a b',)
    """
    escapes = {"\\040": " ", "\\011": "\t", "\\012": "\n", "\\134": "\\"}
    points = []
    for line in mountinfo.splitlines():
        fields = line.split()
        if len(fields) > 4:
            point = fields[4]
            for escape, character in escapes.items():
                point = point.replace(escape, character)
            points.append(point)
    return tuple(points)


def _work(command: Command, log: Path, reporter: Reporter) -> None:
    done = 0

    def watch(line: str) -> None:
        nonlocal done
        done += line.startswith(("Unpacking ", "Setting up ", "I: Unpacking", "I: Configuring"))
        reporter.advanced(done, note=line[:60])

    try:
        run_logged(command, log=log, on_line=watch, timeout_seconds=FETCH_SECONDS)
    except CommandFailed as failure:
        text = "\n".join(failure.tail[-6:])
        raise BuildEnvironmentError(
            f"the Debian root could not be made ({failure.exit_code}):\n{text}",
            hint=f"run the same command again to continue where it stopped; the whole output is in {log}",
        ) from failure


def _search_path() -> str:
    return f"{os.environ.get('PATH', os.defpath)}:/usr/sbin:/sbin"
