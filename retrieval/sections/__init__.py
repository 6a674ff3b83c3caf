"""The sections of ``memory_context``, the text that goes into an agent's prompt."""
