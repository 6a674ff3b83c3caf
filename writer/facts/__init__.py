"""Facts about a user, each with the time for which it holds; a newer value closes the older one, and both are kept."""
