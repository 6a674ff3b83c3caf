"""The write side: retain, worker, rewards, upkeep, erasure."""
