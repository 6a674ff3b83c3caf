"""The procedures that fit a task: found by trigger, attributes or words, above a threshold of the embedding model."""
