"""Statements behind the pages and lists that show a bank."""
