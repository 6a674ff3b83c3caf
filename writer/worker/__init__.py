"""The queue in the cases table and its consumer: claims with a lease, learns, merges repeats, makes cases ready."""
