"""The bodies of the commands: ``app.cli`` imports each when it is called."""
