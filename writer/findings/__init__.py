"""What the steps of a run found out: which calls read, search, ask or change, and what is kept of their outputs."""
