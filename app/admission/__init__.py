"""Limits of rate, turns in the process, and a bound on the queue, so that no user takes all of a service."""
