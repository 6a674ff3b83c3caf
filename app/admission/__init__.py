"""Who may come in now: limits of rate, turns for the process, and a bound on the queue, so that no one holds it all."""
