"""The device suite from outside: what it runs on, whether that can be judged at all, and the runs themselves."""
