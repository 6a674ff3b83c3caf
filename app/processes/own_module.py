"""How this installation starts one of its own modules as a process."""

import sys

OWN_MODULE = (sys.executable, "-P", "-m")
"""Begins the command; -P, so that an `app` in the caller's folder is not taken for ours."""
