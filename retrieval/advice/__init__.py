"""Finds an agent's earlier failures for a failed call, and writes the text of the advice."""
