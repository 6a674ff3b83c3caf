"""Sessions: conversations whose turns are stored one request at a time, and deleted after a set time."""
