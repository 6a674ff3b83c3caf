"""Knowledge of a domain: entries of one user, and entries that an operator shares with all users of an agent."""
