"""People at the console: a client that keeps cookies and does not follow redirects, on the machine of the service."""

import httpx
import pytest

from app.auth.tokens import OPERATOR
from tests.app.console.pages import Page, send
from tests.service import Service, User

HERE = "http://127.0.0.1:8700"


async def stranger(service: Service, at: str = HERE, address: str = "127.0.0.1") -> httpx.AsyncClient:
    """Somebody who is not signed in, at an address of their own."""
    transport = httpx.ASGITransport(service.app, raise_app_exceptions=False, client=(address, 50_000))
    return await service.stack.enter_async_context(httpx.AsyncClient(transport=transport, base_url=at))


async def sign_in(service: Service, token: str, **where: str) -> httpx.AsyncClient:
    """Somebody who signed in with a token."""
    http = await stranger(service, **where)
    form = Page((await http.get("/console/sign-in")).text).form("/console/sign-in")
    answer = await send(http, form, token=token)
    assert answer.status_code == 303, answer.text
    return http


@pytest.fixture
async def console(service: Service, alice: User) -> httpx.AsyncClient:
    """Alice, signed in."""
    return await sign_in(service, service.token(alice.name))


@pytest.fixture
async def operator(service: Service) -> httpx.AsyncClient:
    """The operator, signed in."""
    return await sign_in(service, service.token("operator", scope=OPERATOR))
