"""An explorer of text worlds, in the school experiments of ScienceWorld."""
