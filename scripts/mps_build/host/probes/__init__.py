"""The declared commands that a host is queried, and what their answers say."""
