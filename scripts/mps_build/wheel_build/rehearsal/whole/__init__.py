"""A release built whole for macOS arm64 on Linux: every file compiled, linked, packed, audited and compared."""
