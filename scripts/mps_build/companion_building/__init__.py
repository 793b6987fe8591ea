"""The pipeline of companions: planned, fetched, built against one torch, audited, tried, delivered."""
