"""Every table of the case bank, one module a family; ``retrieval.tables.metadata`` has them all."""
