"""From a failed log to a known cause, or to the first error."""
