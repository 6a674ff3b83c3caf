"""One statement per retrieval: the candidates of a query, fused from words and vectors, and what came of using them."""
