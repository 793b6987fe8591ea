"""Products of Householder reflections (`orgqr`)."""
