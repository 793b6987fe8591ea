"""Planted faults, a file for each area of the device suite; ../README.md tells how they are asked."""
