"""Rights of a user: export and erasure of all data, and edits and deletion of single cases."""
