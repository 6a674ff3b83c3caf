"""casebank beside other memories: the same runs, embedder and machine."""
