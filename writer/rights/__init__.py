"""What a user may ask for: everything exported, everything erased, a case edited or deleted."""
