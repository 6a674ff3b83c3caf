"""The gate before learned policies, in worlds with a known truth."""
