"""The benchmark of faults: kill -9 of one process after another under load, and what was lost, doubled or stuck."""
