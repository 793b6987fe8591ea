"""What only a build needs: from a recipe to an audited wheel, and its rehearsal on Linux."""
