"""From the rows of a search to a slate and the entry that logs it."""
