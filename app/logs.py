"""Logging of the process: JSON lines on standard error for a service, warnings only for a command."""

import logging
import sys
from typing import TextIO, cast

import structlog


class _StandardError:
    """Standard error, looked up at each write, so that a later redirection takes effect."""

    @staticmethod
    def write(text: str) -> int:
        """Writes the text and returns its length."""
        return sys.stderr.write(text)

    @staticmethod
    def flush() -> None:
        """Writes out buffered text."""
        sys.stderr.flush()


def as_json(level: str = "info") -> None:
    """Makes every event from the level up, the libraries' too, one JSON object a line on standard error."""
    _configure(logging.getLevelNamesMapping()[level.upper()], structlog.processors.JSONRenderer())


def quiet() -> None:
    """Shows warnings and errors only, in a form for people."""
    _configure(logging.WARNING, structlog.dev.ConsoleRenderer(colors=False))


def _configure(level: int, renderer: structlog.typing.Processor) -> None:
    shared: list[structlog.typing.Processor] = [
        structlog.contextvars.merge_contextvars,
        structlog.processors.add_log_level,
        structlog.processors.TimeStamper(fmt="iso", utc=True),
    ]
    structlog.configure(
        processors=[*shared, structlog.processors.format_exc_info, renderer],
        wrapper_class=structlog.make_filtering_bound_logger(level),
        logger_factory=structlog.PrintLoggerFactory(cast("TextIO", _StandardError())),
        cache_logger_on_first_use=True,
    )
    handler = logging.StreamHandler(sys.stderr)
    formatter = structlog.stdlib.ProcessorFormatter(foreign_pre_chain=shared, processor=renderer)
    handler.setFormatter(formatter)
    # force: some libraries configure the root logger when they are imported
    logging.basicConfig(level=max(level, logging.INFO), handlers=[handler], force=True)
    for chatty in ("httpx", "httpcore", "wordllama", "alembic", "uvicorn.access", "mcp"):
        logging.getLogger(chatty).setLevel(logging.WARNING)
