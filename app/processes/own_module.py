"""The command that starts one of this installation's modules as a process."""

import sys

OWN_MODULE = (sys.executable, "-P", "-m")
"""First words of the command; -P, so that an `app` in the caller's folder is not taken for ours."""
