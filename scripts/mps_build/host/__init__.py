"""Understand a host or a failure: probes, requirements, recordings, triage, support."""
