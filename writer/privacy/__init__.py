"""Protects users' data: redacts secrets, encrypts texts with a key for each user, and manages the keys."""
