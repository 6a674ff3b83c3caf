"""The worker's queues, in the tables of cases, sessions and memories; a worker has a handler for each queue."""
