"""What public issues of MPS showed: one function an issue."""
