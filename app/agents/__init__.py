"""Scripted agents and their worlds, for the demo, the experiment and the benchmarks."""
