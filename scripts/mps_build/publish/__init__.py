"""Run a fleet and publish: fleet planning, an index of wheels, provenance."""
