"""A session as it is read: the newest turns that fit a budget, and what is told of those that do not."""
