"""What a run teaches, as versions of procedures: learned, revised, counted, pinned, forgotten."""
