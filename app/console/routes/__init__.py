"""The pages of the console, one module for each topic."""

from fastapi import FastAPI

from app.console.routes import (
    bank,
    decisions,
    installation,
    known,
    memories,
    overview,
    policy,
    procedures,
    sign_in,
    user,
)


def add(app: FastAPI) -> None:
    """Adds the pages to the service, outside the API and its documentation."""
    for pages in (overview, decisions, bank, procedures, memories, policy, user, known, sign_in, installation):
        app.router.routes.extend(pages.router.routes)  # as they are: see `include`
