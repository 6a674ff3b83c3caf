"""Backup and restore of the embedded database; a restore erases again everyone who was erased since."""
