"""Facts: what a user told of themselves, kept with when it held; a newer one closes the older, and neither is lost."""
