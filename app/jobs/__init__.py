"""Background jobs: the schedule, the record of past runs, and the metrics that are read from the database."""
