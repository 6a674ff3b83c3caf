"""Protection of a user's data: redaction of secrets, encryption of payloads, and a key for each user."""
