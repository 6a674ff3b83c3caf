"""Procedures, the reusable steps that runs teach: learned, revised, counted, reviewed, pinned and withdrawn."""
