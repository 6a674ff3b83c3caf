"""The demo: a scripted database operator, with and without memory."""
