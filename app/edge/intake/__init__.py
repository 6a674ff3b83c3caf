"""From the bytes on a socket to a validated body: in bounds of time, memory and size, and off the event loop."""
