"""How many files, and so connections, a process may have open."""

import resource

OTHER_FILES = 256
"""What a service has open besides the connections of its clients: the database's, files, pipes."""


def allow_files(wanted: int) -> None:
    """Lets the process have that many files open, or as many as it may."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft != resource.RLIM_INFINITY and soft < wanted:
        most = wanted if hard == resource.RLIM_INFINITY else min(wanted, hard)
        resource.setrlimit(resource.RLIMIT_NOFILE, (most, hard))
