"""The part of casebank that writes: retained runs, the worker that learns from them, rewards, upkeep and erasure."""
