"""The process: settings, database, identity, routes, providers, jobs and commands."""

import logging

# A library that the providers need calls logging.basicConfig when it is imported; with a handler on the root
# that does nothing, and app.logs decides alone.
logging.getLogger().addHandler(logging.NullHandler())
