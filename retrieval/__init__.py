"""The read side: schema, statements, fusion, slate, decision log."""
