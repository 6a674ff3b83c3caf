"""Rewards given after the fact, and the credit that cases and procedures earn by them."""
