"""Recalls turns of sessions, facts and knowledge by the meaning of a question, each with its source."""
