"""The policy computes: features in, order out; no I/O."""
