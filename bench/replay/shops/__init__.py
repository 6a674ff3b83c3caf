"""Three shops whose support agents get look-alike requests."""
