"""Searches the candidates of a query with one statement, by words and vectors, with the rewards of their uses."""
