"""What a process that runs a wheel's code may still do: compute, and talk over what is open already.

Linux's seccomp allows a list of system calls; everything else, and opening a file to write, fails with EPERM.
"""

from __future__ import annotations

import ctypes
import platform
import resource
import struct
import sys

MEMORY_BYTES = 2 << 30
# Sparse tensors: address space, of which a launch of a few threadgroups (a second of the processor) touches little.
LARGE_BYTES = 400 << 30
CPU_SECONDS = 1200
_EPERM = 1
_ALLOW, _ERRNO, _KILL = 0x7FFF0000, 0x00050000 | _EPERM, 0x80000000
_LD, _JEQ, _JSET, _RET = 0x20, 0x15, 0x45, 0x06
_NUMBER, _ARCH, _ARGUMENT_2 = 0, 4, 32  # offsets in struct seccomp_data; argument 2 is openat's flags
_WRITES = 0x1 | 0x2 | 0o100 | 0o1000 | 0o20000000  # O_WRONLY, O_RDWR, O_CREAT, O_TRUNC, O_TMPFILE
_ARCHITECTURES = {"x86_64": 0xC000003E, "aarch64": 0xC00000B7}
# read write close fstat lseek mmap mprotect munmap brk rt_sigaction rt_sigprocmask rt_sigreturn ioctl pread64 readv
# writev mremap madvise getpid sendto recvfrom exit exit_group fcntl getdents64 sigaltstack gettid futex clock_gettime
# clock_nanosleep nanosleep setitimer tgkill newfstatat readlinkat faccessat getrandom rseq membarrier sched_yield
# poll/ppoll access readlink stat lstat getcwd sched_getaffinity sysinfo prlimit64 statx getuid geteuid getgid getegid
_ALLOWED = {
    "x86_64": (0, 1, 3, 5, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17, 19, 20, 25, 28, 39, 44, 45, 60, 231, 72, 217, 131, 186,
               202, 228, 230, 35, 38, 234, 262, 267, 269, 318, 334, 324, 24, 7, 271, 21, 89, 4, 6, 79, 204, 99, 302,
               332, 102, 104, 107, 108, 96, 98, 229, 273, 61),
    "aarch64": (63, 64, 57, 80, 62, 222, 226, 215, 214, 134, 135, 139, 29, 67, 65, 66, 216, 233, 172, 206, 207, 93, 94,
                25, 61, 132, 178, 98, 113, 115, 101, 103, 131, 79, 78, 48, 278, 293, 283, 124, 73, 17, 123, 179, 261,
                291, 174, 175, 176, 177, 169, 165, 114, 99, 260),
}  # fmt: skip
_OPENAT = {"x86_64": 257, "aarch64": 56}


def limit_process(memory: int = MEMORY_BYTES) -> None:
    """Limit memory, time and files of this process and what it starts; no core dumps."""
    for kind, value in (
        (resource.RLIMIT_CORE, 0),
        (resource.RLIMIT_DATA, memory),
        (resource.RLIMIT_CPU, CPU_SECONDS),
        (resource.RLIMIT_NOFILE, 64),
    ):
        _, hard = resource.getrlimit(kind)
        wanted = value if hard == resource.RLIM_INFINITY else min(value, hard)
        resource.setrlimit(kind, (wanted, wanted))


def close_the_door() -> bool:
    """Forbid this process all but computing; return False where the system cannot (then only the limits hold)."""
    resource.setrlimit(resource.RLIMIT_FSIZE, (0, 0))
    machine = platform.machine()
    if machine not in _ALLOWED or not sys.platform.startswith("linux"):
        return False
    program = _filter(machine)
    instructions = b"".join(struct.pack("<HBBI", *each) for each in program)
    buffer = ctypes.create_string_buffer(instructions, len(instructions))
    header = struct.pack("<HxxxxxxQ", len(program), ctypes.addressof(buffer))
    libc = ctypes.CDLL(None, use_errno=True)
    no_new_privileges, set_seccomp, mode_filter = 38, 22, 2
    if libc.prctl(no_new_privileges, 1, 0, 0, 0) != 0:
        return False
    return bool(libc.prctl(set_seccomp, mode_filter, ctypes.c_char_p(header), 0, 0) == 0)


def _filter(machine: str) -> list[tuple[int, int, int, int]]:
    """Return the BPF program: right architecture; openat without writing; a list of calls; else EPERM."""
    program = [(_LD, 0, 0, _ARCH), (_JEQ, 1, 0, _ARCHITECTURES[machine]), (_RET, 0, 0, _KILL), (_LD, 0, 0, _NUMBER)]
    program += [
        (_JEQ, 0, 4, _OPENAT[machine]),
        (_LD, 0, 0, _ARGUMENT_2),
        (_JSET, 1, 0, _WRITES),
        (_RET, 0, 0, _ALLOW),
        (_RET, 0, 0, _ERRNO),
    ]
    for number in sorted(_ALLOWED[machine]):
        program += [(_JEQ, 0, 1, number), (_RET, 0, 0, _ALLOW)]
    return [*program, (_RET, 0, 0, _ERRNO)]
