"""Recipes: their model, their consistency rules, where they are, their locks."""
