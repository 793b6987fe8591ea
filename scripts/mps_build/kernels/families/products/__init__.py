"""Products of matrices and of vectors: dense, in groups, of packed and of whole numbers."""
