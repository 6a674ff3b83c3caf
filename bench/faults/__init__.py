"""The benchmark of faults: kill -9 of one process after another under load, and losses, duplicates and stuck cases."""
