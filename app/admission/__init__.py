"""Rate limits, turns for concurrent requests, and a bound on the queue, so that no user takes all of a service."""
