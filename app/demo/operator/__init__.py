"""A database operator that repairs statements by trial and error, on a scratch database. It is not an LLM."""
