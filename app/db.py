"""The engine: one pool of connections that have no rights but the service's."""

from sqlalchemy.ext.asyncio import AsyncEngine, create_async_engine

SERVICE_ROLE = "casebank_service"
WORKER_ROLE = "casebank_worker"


def service_engine(url: str, *, pool_size: int = 10, timeout_s: float = 10.0) -> AsyncEngine:
    """Returns a pool whose connections act as the plain service role, whoever the URL logs in as."""
    return create_async_engine(
        asyncpg_url(url),
        pool_size=pool_size,
        max_overflow=0,
        pool_pre_ping=False,  # a broken connection is reported as such; the pool drops it and the client tries again
        pool_timeout=timeout_s,
        connect_args={
            "command_timeout": timeout_s,
            "timeout": timeout_s,
            "server_settings": {"role": SERVICE_ROLE, "application_name": "casebank", "jit": "off"},
        },
    )


def asyncpg_url(url: str) -> str:
    """Returns the URL with the asyncpg driver named; ``postgresql://`` alone would mean psycopg."""
    scheme, _, rest = url.partition("://")
    if scheme not in {"postgresql", "postgres", "postgresql+asyncpg"}:
        raise ValueError("DATABASE_URL must begin with postgresql://")
    return f"postgresql+asyncpg://{rest}"
