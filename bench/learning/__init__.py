"""The learned policy measured: against fixed rules, against known truth, against poison."""
