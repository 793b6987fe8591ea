"""The fleet: what building and testing on many Macs costs, who may use them, and what a workflow learns."""
