"""The process: settings, database, identity, routes, providers, jobs and commands."""

import logging
import os
from importlib.metadata import version

__version__ = version("casebank")

# A library that the providers need calls logging.basicConfig when it is imported; with a handler on the root
# that does nothing, and app.logs decides alone.
logging.getLogger().addHandler(logging.NullHandler())

# Read when numpy is imported. The matrices of one query are small: more threads wait for each other, spinning on the
# cores that the database needs, for longer than one of them computes.
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
