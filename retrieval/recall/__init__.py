"""Recalls turns of sessions, facts about the user and knowledge that a question is about, each with its source."""
