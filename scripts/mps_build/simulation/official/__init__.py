"""The official macOS wheel itself, run by Linux: its own machine code, loaded into an arm64 Python under qemu-user."""
