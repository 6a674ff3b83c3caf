"""Intake of bodies, from the bytes on a socket to a validated value, within bounds of time, memory and size."""
