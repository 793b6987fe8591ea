"""Images made larger or smaller."""
