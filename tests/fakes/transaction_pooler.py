"""PgBouncer before the tests' own server, in transaction mode: each transaction may get another session."""

import os
import shutil
import signal
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from app.postgres import EmbeddedPostgres
from app.processes.own_service import free_port

PROGRAM = shutil.which("pgbouncer", path=f"{os.environ.get('PATH', '')}:/usr/sbin")
SESSIONS = 2
"""So few that a session is soon another one's."""


@contextmanager
def transaction_pooler(server: EmbeddedPostgres, folder: Path) -> Iterator[int]:
    """Yields its port on the loopback address; it logs in as whoever owns the server."""
    port, owner = free_port(), server.socket_dir.stat()
    settings = folder / "pgbouncer.ini"
    settings.write_text(
        f"[databases]\n* = host={server.socket_dir} port={server.port} user=postgres pool_size={SESSIONS}\n"
        f"[pgbouncer]\nlisten_addr = 127.0.0.1\nlisten_port = {port}\nunix_socket_dir =\n"
        "auth_type = any\npool_mode = transaction\nserver_reset_query_always = 0\n"
    )
    for path in (folder, settings):
        os.chown(path, owner.st_uid, owner.st_gid)
    for parent in folder.parents:  # pgbouncer is never root, and the folders of a test that root runs are root's
        if parent.stat().st_uid == os.geteuid() and not parent.stat().st_mode & 0o001:
            parent.chmod(parent.stat().st_mode | 0o001)
    as_owner = {"user": owner.st_uid, "group": owner.st_gid, "extra_groups": []} if os.geteuid() == 0 else {}
    with (folder / "log").open("wb") as log:
        process = subprocess.Popen([str(PROGRAM), str(settings)], stdout=log, stderr=log, **as_owner)
    try:
        yield port
    finally:
        process.send_signal(signal.SIGTERM)
        process.wait(timeout=30)
