"""A language model in the rules' place: what it is told of a run, what it answers, and what it may cost."""
