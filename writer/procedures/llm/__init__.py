"""Learners that use a language model: the digest that the model reads, its answers, and its token budget."""
