"""`triu`, `tril` and the indices of triangles."""
