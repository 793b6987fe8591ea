"""Build a wheel: from a recipe to an audited wheel, and what only a build needs."""
