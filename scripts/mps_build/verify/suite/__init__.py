"""The device suite from outside: children under a watchdog, and their outcomes."""
