"""The queues in the tables of cases, sessions and memories: one consumer, with a handler for each of them."""
