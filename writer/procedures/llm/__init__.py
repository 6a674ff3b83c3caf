"""Learners that use a language model: the digest it reads, its answers, and its token budget."""
