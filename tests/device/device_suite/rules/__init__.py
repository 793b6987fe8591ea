"""Rules over all overloads: stored calls with one thing changed, each change a short list in `asked.json`."""
