"""The audit: an entry for every change, in a chain that shows whatever is done to it afterwards."""

from writer.audit.changes import Change, note

__all__ = ["Change", "note"]
