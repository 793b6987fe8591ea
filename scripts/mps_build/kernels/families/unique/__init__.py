"""`unique`: boundaries of runs, their values, counts and the inverse."""
