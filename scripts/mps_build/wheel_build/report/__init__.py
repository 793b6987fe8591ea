"""Where a build's time went: from ninja's log, the graph that CMake wrote, and receipts if there are."""
