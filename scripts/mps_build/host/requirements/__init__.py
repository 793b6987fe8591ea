"""A host against a recipe: every requirement, every reason at once."""
