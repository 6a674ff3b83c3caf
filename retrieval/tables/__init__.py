"""The tables of the case bank, one module for each family; ``retrieval.tables.metadata`` lists them all."""
