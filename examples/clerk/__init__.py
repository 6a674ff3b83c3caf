"""A scripted clerk, and an office that changes its rules."""
