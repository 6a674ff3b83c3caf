"""Keeps a bank in bounds: prunes it, indexes what is large, moves it to another embedding model."""
