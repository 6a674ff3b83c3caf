"""Who gets in to the console, by which door, and until when."""

from contextlib import AsyncExitStack
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from urllib.parse import parse_qs, urlsplit

import httpx
import jwt
import pytest
from pydantic import SecretStr

from app.auth.keys import OldSecret, SharedSecret
from app.auth.revocations import Revocation, revoke
from app.auth.tokens import ACT_AS
from app.commands.console import link, open_privately
from app.console.page import COOKIE
from app.console.visits import LONGEST, Link, Visit, VisitSeal
from app.main import create_app
from tests.app.console.conftest import HERE, sign_in, stranger
from tests.app.console.pages import Page, send
from tests.service import Service, User


async def test_a_token_signs_in_and_leads_back_to_the_page_that_was_asked_for(service: Service, alice: User):
    http = await stranger(service)
    asked = await http.get("/console/decisions?arm=serving")
    assert asked.status_code == 303
    form = Page((await http.get(asked.headers["location"])).text).form("/console/sign-in")
    answer = await send(http, form, token=service.token(alice.name))
    assert (answer.status_code, answer.headers["location"]) == (303, "/console/decisions?arm=serving")
    assert (await http.get("/console/decisions?arm=serving")).status_code == 200


async def test_the_cookie_is_kept_from_scripts_and_other_sites_and_holds_no_token_and_no_name(
    service: Service, alice: User
):
    http, token = await stranger(service), service.token(alice.name)
    form = Page((await http.get("/console/sign-in")).text).form("/console/sign-in")
    cookie = (await send(http, form, token=token)).headers["set-cookie"]
    assert {"HttpOnly", "SameSite=strict", "Path=/console"} <= set(cookie.split("; "))
    assert token not in cookie
    assert alice.name not in cookie
    visit = VisitSeal(service.settings).open(Visit, http.cookies[COOKIE])
    assert visit is not None
    assert visit.ends_at - datetime.now(UTC) <= timedelta(hours=1)  # as the token


async def test_a_visit_lasts_twelve_hours_at_the_most(service: Service):
    seal, now = VisitSeal(service.settings), datetime.now(UTC)
    made = Link(user_sub="alice", made_at=now, is_operator=False).visit()
    cookie = seal.seal(made)
    assert seal.open(Visit, cookie, now + LONGEST - timedelta(minutes=1)) == made
    assert seal.open(Visit, cookie, now + LONGEST) is None


@pytest.mark.parametrize("kind", ["nothing", "words", "expired", "elsewhere", "service"])
async def test_what_is_no_good_token_of_a_user_is_refused_and_not_repeated(service: Service, alice: User, kind: str):
    token = {
        "nothing": "",
        "words": "let-me-in-" + alice.name,
        "expired": service.token(alice.name, age=timedelta(hours=2)),
        "elsewhere": service.token(alice.name, audience="another service"),
        "service": service.token("backend", scope=ACT_AS),
    }[kind]
    http = await stranger(service, address="127.0.0.2")
    form = Page((await http.get("/console/sign-in")).text).form("/console/sign-in")
    answer = await send(http, form, token=token)
    assert answer.status_code in {401, 403}
    assert "Not signed in" in answer.text
    assert not token or token not in answer.text
    assert COOKIE not in http.cookies


async def test_wrong_tokens_keep_no_right_one_out(service: Service, alice: User):
    """Behind a proxy all have one address, and a token cannot be guessed: the API takes as many attempts."""
    http = await stranger(service, address="127.0.0.3")
    form = Page((await http.get("/console/sign-in")).text).form("/console/sign-in")
    assert {(await send(http, form, token=f"guess {number}")).status_code for number in range(12)} == {401}
    assert (await send(http, form, token=service.token(alice.name))).status_code == 303


async def test_signing_out_ends_the_visit_for_a_copy_of_its_cookie_too(service: Service, console: httpx.AsyncClient):
    copy = console.cookies[COOKIE]
    answer = await send(console, Page((await console.get("/console/user")).text).form("/console/sign-out"))
    assert (answer.status_code, answer.headers["location"]) == (303, "/console/sign-in")
    assert COOKIE not in console.cookies
    thief = await stranger(service)
    thief.cookies.set(COOKIE, copy, domain="127.0.0.1", path="/console")
    assert (await thief.get("/console/user")).status_code == 303


async def test_a_revoked_token_ends_its_visit(service: Service, alice: User, console: httpx.AsyncClient):
    assert (await console.get("/console/user")).status_code == 200
    async with service.runtime.database.as_worker() as connection:
        await revoke(connection, Revocation("lost", subject=alice.name))
    await service.app.state.verifier.revocations.refresh(service.runtime.database)
    answer = await console.get("/console/user")
    assert (answer.status_code, answer.headers["location"]) == (303, "/console/sign-in?next=/console/user")


async def test_a_visit_ends_with_the_secret_that_verified_its_token(service: Service, alice: User):
    verifier = service.app.state.verifier
    leaked, new = (SharedSecret(name * 40) for name in "on")
    service.app.state.verifier = replace(
        verifier,
        keys=SharedSecret(
            new.secret,
            (OldSecret.model_validate({"secret": leaked.secret, "until": datetime.now(UTC) + timedelta(hours=1)}),),
        ),
    )
    claims = jwt.decode(service.token(alice.name), options={"verify_signature": False})
    try:
        forged = await sign_in(service, jwt.encode(claims, leaked.secret))
        good = await sign_in(service, jwt.encode(claims, new.secret))
        by_link = await stranger(service)
        page = await by_link.get(_path(link(service.settings, HERE, alice.name, is_operator=False)))
        await send(by_link, Page(page.text).form("/console/link"))
        before = [(await http.get("/console/user")).status_code for http in (forged, good, by_link)]
        service.app.state.verifier = replace(verifier, keys=new)
        after = [(await http.get("/console/user")).status_code for http in (forged, good, by_link)]
    finally:
        service.app.state.verifier = verifier
    assert (before, after) == ([200, 200, 200], [303, 200, 200])


async def test_a_visit_that_is_over_returns_to_sign_in_and_then_back_to_the_page_of_the_form(
    service: Service, alice: User
):
    http, seal = await sign_in(service, service.token(alice.name)), VisitSeal(service.settings)
    form = Page((await http.get("/console/known")).text).form("/console/known/export")
    visit = seal.open(Visit, http.cookies[COOKIE])
    assert visit is not None
    over = seal.seal(visit.model_copy(update={"ends_at": datetime.now(UTC)}))
    http.cookies.clear()
    http.cookies.set(COOKIE, over, domain="127.0.0.1", path="/console")
    headers = {"Origin": HERE, "Referer": f"{HERE}/console/user?agent=a"}
    answer = await http.post(form.action, data=form.fields, headers=headers)
    assert answer.status_code == 303
    assert parse_qs(urlsplit(answer.headers["location"]).query) == {"next": ["/console/user?agent=a"]}


@pytest.mark.parametrize(
    "path",
    ["https://evil.example/", "//evil.example/console", "/v1/cases", "/consolex", "/console\\@evil", "javascript:1"],
)
async def test_nobody_is_sent_elsewhere_after_signing_in(service: Service, alice: User, path: str):
    http = await stranger(service)
    form = Page((await http.get("/console/sign-in", params={"next": path})).text).form("/console/sign-in")
    answer = await send(http, form, token=service.token(alice.name), next=path)
    assert answer.headers["location"] == "/console"


def _path(address: str) -> str:
    return address.removeprefix(HERE)


async def test_a_link_signs_in_once_by_its_button_alone(service: Service, alice: User):
    path = _path(link(service.settings, HERE, alice.name, is_operator=False))
    first, second = await stranger(service), await stranger(service)
    for _ in range(3):  # a browser that fetches it beforehand uses nothing up
        page = await first.get(path)
        assert (page.status_code, COOKIE in first.cookies) == (200, False)
    form = Page(page.text).form("/console/link")
    assert (await send(first, form)).status_code == 303
    assert alice.name in (await first.get("/console/user")).text
    assert (await send(second, form)).status_code == 410
    assert COOKIE not in second.cookies


async def test_a_link_is_over_after_two_minutes(service: Service, alice: User):
    long_ago = datetime.now(UTC) - timedelta(minutes=3)
    code = VisitSeal(service.settings).seal(Link(user_sub=alice.name, made_at=long_ago, is_operator=False))
    http = await stranger(service)
    assert (await http.get("/console/link", params={"code": code})).status_code == 410
    answer = await http.post("/console/link", data={"code": code}, headers={"Origin": HERE})
    assert answer.status_code == 410


async def test_a_link_is_no_cookie_and_another_installations_link_is_none(service: Service, alice: User):
    made = Link(user_sub=alice.name, made_at=datetime.now(UTC), is_operator=True)
    http = await stranger(service)
    http.cookies.set(COOKIE, VisitSeal(service.settings).seal(made), domain="127.0.0.1", path="/console")
    assert (await http.get("/console/user")).status_code == 303
    http.cookies.clear()
    other = service.settings.model_copy(update={"master_key": SecretStr("00" * 32)})
    http.cookies.set(COOKIE, VisitSeal(other).seal(made.visit()), domain="127.0.0.1", path="/console")
    assert (await http.get("/console/user")).status_code == 303


def test_the_file_that_opens_a_link_is_readable_by_its_owner_alone(
    service: Service, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setenv("BROWSER", "true")
    settings = service.settings.model_copy(update={"home": tmp_path})
    open_privately(settings, "http://127.0.0.1:8700/console/link?code=x")
    assert (tmp_path / "console.html").stat().st_mode & 0o777 == 0o600


@pytest.mark.parametrize("host", ["evil.example", "evil.example:8700", "127.0.0.1.evil.example", ""])
async def test_a_name_that_is_not_ours_finds_no_console(service: Service, host: str):
    http = await stranger(service)
    answer = await http.get("/console/sign-in", headers={"Host": host})
    assert answer.status_code == 404
    assert "html" not in answer.headers["content-type"]


@pytest.mark.parametrize("host", ["localhost:8700", "127.0.0.1", "[::1]:8700"])
async def test_this_machine_finds_it_by_each_of_its_own_names(service: Service, host: str):
    assert (await (await stranger(service)).get("/console/sign-in", headers={"Host": host})).status_code == 200


async def test_another_machine_finds_no_console_unless_it_is_set(service: Service):
    for address, headers in (("192.0.2.7", {}), ("127.0.0.1", {"X-Forwarded-For": "192.0.2.7"})):
        http = await stranger(service, address=address)
        assert (await http.get("/console/sign-in", headers=headers)).status_code == 404


async def test_a_form_of_another_origin_signs_nobody_in(service: Service, alice: User):
    http = await stranger(service)
    for headers in ({"Origin": "http://evil.example"}, {"Origin": "null"}, {}):
        answer = await http.post("/console/sign-in", data={"token": service.token(alice.name)}, headers=headers)
        assert answer.status_code == 403
        assert COOKIE not in http.cookies


async def test_at_an_address_that_is_set_the_console_answers_with_a_cookie_for_https_alone(
    service: Service, alice: User
):
    there = "https://memory.example.org"
    app = create_app(service.settings.model_copy(update={"console": there}))
    async with AsyncExitStack() as clients, app.router.lifespan_context(app):
        elsewhere = Service(app, service.settings, clients)
        http = await stranger(elsewhere, at=there, address="192.0.2.7")
        form = Page((await http.get("/console/sign-in")).text).form("/console/sign-in")
        answer = await send(http, form, token=service.token(alice.name))
        assert answer.status_code == 303
        assert "Secure" in answer.headers["set-cookie"].split("; ")
        assert (await http.get("/console/user")).status_code == 200
        other = await stranger(elsewhere, at="https://other.example.org", address="192.0.2.7")
        assert (await other.get("/console/sign-in")).status_code == 404


async def test_where_it_is_off_there_is_no_console(service: Service):
    app = create_app(service.settings.model_copy(update={"console": "off"}))
    async with AsyncExitStack() as clients, app.router.lifespan_context(app):
        http = await stranger(Service(app, service.settings, clients))
        for path in ("/console", "/console/sign-in", "/console/static/console.css"):
            assert (await http.get(path)).status_code == 404


@pytest.mark.parametrize(
    "text", ["on", "memory.example.org", "https://memory.example.org/console", "HTTPS://A.example"]
)
def test_what_is_no_address_is_refused_at_the_start(service: Service, text: str):
    with pytest.raises(ValueError, match="loopback, off, or addresses"):
        create_app(service.settings.model_copy(update={"console": text}))


async def test_who_comes_from_another_site_is_told_how_to_go_on(service: Service):
    http = await stranger(service)
    page = await http.get("/console/sign-in?next=/console/tools", headers={"Sec-Fetch-Site": "cross-site"})
    assert "/console/tools" in Page(page.text).links
