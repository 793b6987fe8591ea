"""Logs as their readers meant them."""
