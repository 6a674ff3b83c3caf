"""The experiment: the effect of memory on an agent in an environment, and its price."""
