"""The audit: an entry for every change, in a chain of hashes that reveals any later manipulation."""

from writer.audit.changes import Change, note, noted_together

__all__ = ["Change", "note", "noted_together"]
