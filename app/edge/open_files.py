"""The limit of open files, and so of connections, of a process."""

import resource

OTHER_FILES = 256
"""Open files of a service besides its clients' connections: the database's connections, files, pipes."""


def allow_files(wanted: int) -> None:
    """Raises the process's limit of open files to ``wanted``, or to the most that is allowed."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft != resource.RLIM_INFINITY and soft < wanted:
        most = wanted if hard == resource.RLIM_INFINITY else min(wanted, hard)
        resource.setrlimit(resource.RLIMIT_NOFILE, (most, hard))
