"""Knowledge of a domain: a user's own, and what an operator writes for all users of an agent."""
