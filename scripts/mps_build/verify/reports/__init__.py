"""A record as people and machines read it: Markdown, JUnit, one HTML page, and two records side by side."""
