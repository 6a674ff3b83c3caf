"""The benchmark of findings: repeated reads spared to an agent, and stale answers."""
