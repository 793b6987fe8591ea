"""Programs that setup.py and delocate call on a Mac, with LLVM's behind them."""

from __future__ import annotations

import shlex
from pathlib import Path

from ...zig.files import write_if_new

_OTOOL = """\
#!/bin/sh
# otool for delocate and setup.py (mps-build): LLVM's knows no -m, which means a file whose name has brackets.
for each; do
  shift
  case "$each" in -m) ;; *) set -- "$@" "$each" ;; esac
done
exec {llvm}/llvm-otool "$@"
"""
_CODESIGN = """\
#!/bin/sh
# codesign for delocate (mps-build). LLD and LLVM's install_name_tool sign ad hoc whatever they write, so that there is
# nothing left to do; a file without a signature is refused, and the audit checks every page's hash.
for file; do :; done
if {llvm}/llvm-otool -l "$file" | grep -q LC_CODE_SIGNATURE; then exit 0; fi
echo "$file: code object is not signed at all" >&2
exit 1
"""
_SW_VERS = """\
#!/bin/sh
# CMake asks which macOS this is, and without an answer knows no rpaths (mps-build).
case "$1" in -productVersion) echo {macos} ;; *) printf 'ProductName:\\tmacOS\\nProductVersion:\\t{macos}\\n' ;; esac
"""


def write_mac_tools(folder: Path, *, llvm: Path, macos: str) -> None:
    """Write `otool`, `codesign` and `sw_vers` to `folder`; install_name_tool, lipo and ar are there as links.

    Args:
        llvm: the folder of LLVM's programs, as seen inside the root.
        macos: the version that this macOS claims, as 14.5.
    """
    words = {"llvm": shlex.quote(str(llvm)), "macos": macos}
    for name, text in (("otool", _OTOOL), ("codesign", _CODESIGN), ("sw_vers", _SW_VERS)):
        place = folder / name
        if place.is_symlink():
            place.unlink()
        write_if_new(place, text.format(**words), executable=True)
