"""The declared commands that a host is asked, and what their answers say."""
