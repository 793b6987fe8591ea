"""zig as the compiler of a macOS arm64 build on another system."""
