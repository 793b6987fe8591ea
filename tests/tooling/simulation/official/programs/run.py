"""Run by the interpreter under emulation: LOADER PROVIDER... IMAGE; each check of the image in a process of its own."""

import ctypes
import os
import re
import sys
from pathlib import Path

loader, *providers, image = sys.argv[1:]
library = ctypes.PyDLL(loader, ctypes.RTLD_GLOBAL)
library.official_fault.restype = ctypes.c_char_p
library.official_symbol.restype = ctypes.c_void_p
for provider in providers:
    assert library.official_provide(provider.encode()) == 0, library.official_fault()
assert library.official_open(image.encode()) == 0, library.official_fault()
failed = 0
for name in sorted(set(re.findall(rb"_check_\w+", Path(image).read_bytes()))):
    address = library.official_symbol(name)
    if not address:
        continue
    sys.stdout.flush()
    child = os.fork()
    if not child:
        status = ctypes.CFUNCTYPE(ctypes.c_int)(address)()
        print(name.decode(), status, flush=True)
        os._exit(status != 0)
    if status := os.waitpid(child, 0)[1]:
        failed += 1
        print(name.decode(), "ended with", status)
sys.exit(failed != 0)
