"""Facts as they are read: a page of them, as of a time, and what a context tells of the user."""
