"""Statements that read what the console's pages and the API's lists show of a bank."""
