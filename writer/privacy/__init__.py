"""What keeps a user's data theirs: secrets are taken out, payloads are sealed, each user has a key."""
