"""Earlier failures of an agent, as a failed call finds them, and the text that tells of them."""
