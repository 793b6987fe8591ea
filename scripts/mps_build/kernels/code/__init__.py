"""From a kernel's bitcode to machine code of this machine: read, checked, rewritten, compiled."""
