"""What people do at the console, each from sign-in on, in a real browser with scripts switched off."""

import re
from collections.abc import AsyncIterator
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from app.auth.tokens import OPERATOR
from app.commands.console import link
from app.console.page import COOKIE
from app.console.visits import Visit, VisitSeal
from app.processes.own_service import OwnService, own_service
from tests.app.console.browser import chromium, needs_browser, sign_in, visitor
from tests.app.console.furnish import Furnished, furnish
from tests.service import Service, User

if TYPE_CHECKING:
    from playwright.async_api import Browser, Page

pytestmark = needs_browser


@pytest.fixture(scope="module")
async def browser() -> AsyncIterator["Browser"]:
    async with chromium() as started:
        yield started


@pytest.fixture(scope="module")
async def serving(service: Service) -> AsyncIterator[OwnService]:
    """The same bank, by a service in a process of its own, which a browser can reach."""
    async with own_service(service.settings) as running:
        yield running


@dataclass(frozen=True)
class Scene:
    """A browser, the service that it looks at, and the token of a user who has something on every page."""

    browser: "Browser"
    serving: OwnService
    user: User
    things: Furnished

    def token(self, scope: str = "") -> str:
        return self.user.service.token(self.user.name, scope=scope)

    def visitor(self, **options: Any) -> AbstractAsyncContextManager["Page"]:
        return visitor(self.browser, self.serving.base_url, **options)


@pytest.fixture
def scene(browser: "Browser", serving: OwnService, alice: User, things: Furnished) -> Scene:
    return Scene(browser, serving, alice, things)


@pytest.fixture
async def page(browser: "Browser", serving: OwnService) -> AsyncIterator["Page"]:
    async with visitor(browser, serving.base_url) as opened:
        yield opened


@pytest.fixture
async def things(alice: User) -> Furnished:
    return await furnish(alice)


async def test_a_person_signs_in_and_sees_the_overview_and_signs_out(
    page: "Page", service: Service, alice: User, things: Furnished
):
    await sign_in(page, service.token(alice.name))
    await page.get_by_role("heading", name="Did memory help?").wait_for()
    await page.get_by_role("button", name=re.compile("Sign out")).click()
    await page.get_by_role("heading", name="Sign in").wait_for()
    await page.goto("/console")
    await page.get_by_role("heading", name="Sign in").wait_for()


async def test_a_wrong_token_is_told_and_the_right_one_still_gets_in(page: "Page", service: Service, alice: User):
    await sign_in(page, "no token")
    await page.get_by_role("alert").wait_for()
    await page.get_by_label("Your token").fill(service.token(alice.name))
    await page.get_by_role("button", name="Sign in").click()
    await page.get_by_role("heading", name="No memories yet").wait_for()


async def test_a_link_signs_in_by_its_button_and_not_twice(page: "Page", scene: Scene):
    address = link(scene.serving.settings, scene.serving.base_url, scene.user.name, is_operator=False)
    await page.goto(address)
    await page.get_by_role("button", name="Sign in").click()
    await page.get_by_role("heading", name=re.compile("Overview")).wait_for()
    async with scene.visitor() as other:
        await other.goto(address)
        await other.get_by_role("button", name="Sign in").click()
        await other.get_by_role("heading", name="This link has expired").wait_for()


async def test_an_expired_visit_goes_by_sign_in_back_to_where_it_was(
    page: "Page", service: Service, serving: OwnService, alice: User, things: Furnished
):
    await sign_in(page, service.token(alice.name), "/console/tools")
    await page.get_by_role("heading", name="Tools").wait_for()
    (cookie,) = await page.context.cookies()
    seal = VisitSeal(service.settings)
    visit = seal.open(Visit, cookie["value"])
    assert visit is not None
    over = seal.seal(visit.model_copy(update={"ends_at": datetime.now(UTC)}))
    await page.context.add_cookies([{**cookie, "value": over}])  # type: ignore[list-item]
    await page.get_by_role("link", name="Policy").click()
    await page.get_by_label("Your token").fill(service.token(alice.name))
    await page.get_by_role("button", name="Sign in").click()
    await page.get_by_role("heading", name=re.compile("Policy")).wait_for()
    assert cookie["name"] == COOKIE
    assert (cookie["httpOnly"], cookie["sameSite"]) == (True, "Strict")


async def test_another_users_case_is_not_there(page: "Page", service: Service, bob: User, things: Furnished):
    await bob.retain("tune a piano")
    await bob.settle()
    await sign_in(page, service.token(bob.name), f"/console/cases/{things.case_id}")
    await page.get_by_role("heading", name="Not found").wait_for()
    assert "restart" not in await page.content()


async def test_from_a_decision_to_why_and_on_to_the_case(
    page: "Page", service: Service, alice: User, things: Furnished
):
    await sign_in(page, service.token(alice.name), "/console/decisions")
    await page.get_by_role("link", name="restart the web server").first.click()
    await page.get_by_text(re.compile("^Chosen: it shares")).first.wait_for()
    await page.get_by_role("region", name="Chosen", exact=True).get_by_role("link").first.click()
    await page.get_by_role("heading", name="Tool calls").wait_for()


async def test_a_search_finds_what_the_agent_would_be_shown(
    page: "Page", service: Service, alice: User, things: Furnished
):
    await sign_in(page, service.token(alice.name), "/console/bank")
    await page.get_by_label("Search as the agent does").fill("restart the web server")
    await page.get_by_role("button", name="Search").click()
    await page.get_by_role("heading", name="Cases that the agent would get").wait_for()
    await page.get_by_text(re.compile("Text for the prompt")).click()
    await page.get_by_text("then look").first.wait_for()


async def test_a_case_is_tagged_and_then_deleted(page: "Page", service: Service, alice: User, things: Furnished):
    await sign_in(page, service.token(alice.name), f"/console/cases/{things.case_id}")
    await page.get_by_label("Tags, separated by commas").fill("checked, mine")
    await page.get_by_role("button", name="Save tags").click()
    await page.get_by_text("mine", exact=True).wait_for()
    assert (await alice.case(things.case_id))["tags"] == ["checked", "mine"]
    await page.get_by_role("button", name="Delete this case").click()  # the box is not ticked, so nothing is sent
    assert (await alice.http.get(f"/v1/cases/{things.case_id}")).status_code == 200
    await page.get_by_label(re.compile("Delete this case permanently")).check()
    await page.get_by_role("button", name="Delete this case").click()
    await page.get_by_role("heading", name="Bank", exact=True).wait_for()
    assert (await alice.http.get(f"/v1/cases/{things.case_id}")).status_code == 404


async def test_two_versions_are_compared_one_is_pinned_and_the_procedure_is_retired(
    page: "Page", service: Service, alice: User, things: Furnished
):
    await sign_in(page, service.token(alice.name), f"/console/procedures/{things.procedure_id}")
    await page.get_by_label("From version").select_option("1")
    await page.get_by_label("to version").select_option("2")
    await page.get_by_role("button", name="Compare").click()
    await page.locator("ins").first.wait_for()
    await page.get_by_role("button", name="Pin version 1").click()
    await page.get_by_role("button", name="Unpin version 1").wait_for()
    await page.get_by_label(re.compile("Stop giving this procedure")).check()
    await page.get_by_role("button", name="Retire this procedure").click()
    await page.get_by_role("heading", name="Versions", exact=True).wait_for()
    assert await page.get_by_role("button", name="Retire this procedure").count() == 0


async def test_a_session_and_a_fact_are_looked_at_and_deleted(
    page: "Page", service: Service, alice: User, things: Furnished
):
    await sign_in(page, service.token(alice.name), "/console/sessions")
    await page.get_by_role("link", name=things.session).click()
    await page.get_by_role("heading", name="Turns").wait_for()
    await page.get_by_label(re.compile("Delete this session permanently")).check()
    await page.get_by_role("button", name="Delete this session").click()
    await page.get_by_text("No sessions yet.").wait_for()
    await page.get_by_role("link", name="Facts").click()
    for _ in range(await page.get_by_role("button", name="Delete", exact=True).count()):
        await page.get_by_label("Delete this fact permanently").first.check()
        await page.get_by_role("button", name="Delete", exact=True).first.click()
    await page.get_by_text("No facts.").wait_for()


async def test_an_entry_of_knowledge_is_read_and_deleted(
    page: "Page", service: Service, alice: User, things: Furnished
):
    await sign_in(page, service.token(alice.name), "/console/facts")
    await page.get_by_role("link", name="Knowledge", exact=True).click()
    await page.get_by_text("restart the web server").first.wait_for()
    await page.get_by_label("Delete this entry permanently").check()
    await page.get_by_role("button", name="Delete", exact=True).click()
    await page.get_by_text("No entries.").wait_for()
    assert (await alice.http.get(f"/v1/knowledge/{things.knowledge_id}")).status_code == 404


async def test_a_verdict_is_read_check_by_check_and_a_policy_rolled_back(
    page: "Page", service: Service, alice: User, things: Furnished
):
    await sign_in(page, service.token(alice.name), "/console/policy")
    await page.get_by_role("rowheader", name="Better than the order that replay chose, with confidence").wait_for()
    await page.get_by_role("img", name="Calibration").wait_for()
    await page.get_by_label(re.compile("Return to the order that replay chose")).check()
    await page.get_by_role("button", name="Roll back q-1").click()
    await page.get_by_text("rolled back").first.wait_for()
    policies = (await alice.http.get("/v1/policy", params={"agent": things.agent})).json()
    assert not policies["serving"].startswith("q-")


async def test_settings_are_changed_and_a_mistake_is_named(
    page: "Page", service: Service, alice: User, things: Furnished
):
    await sign_in(page, service.token(alice.name), "/console/user")
    await page.get_by_label("Cases on a slate").fill("6")
    await page.get_by_label("Learn which cases help").uncheck()
    await page.get_by_role("button", name="Save the settings").click()
    await page.get_by_role("heading", name="Recent changes").wait_for()
    profile = (await alice.http.get(f"/v1/profiles/{things.agent}")).json()
    assert (profile["k"], profile["learning"]) == (6, False)
    await page.get_by_label("Cases on a slate").fill("a thousand")
    await page.get_by_role("button", name="Save the settings").click()
    await page.get_by_text("“Cases on a slate” must be a whole number").wait_for()


async def test_everything_is_exported_and_then_erased_with_a_receipt(
    page: "Page", service: Service, alice: User, things: Furnished, tmp_path: Path
):
    await sign_in(page, service.token(alice.name), "/console/known")
    async with page.expect_download() as coming:
        await page.get_by_role("button", name="Export everything").click()
    await (await coming.value).save_as(tmp_path / "export.jsonl")
    assert things.case_id in (tmp_path / "export.jsonl").read_text()
    await page.get_by_label(re.compile("Type your name")).fill(alice.name)
    await page.get_by_role("button", name="Delete all my data").click()
    await page.get_by_role("heading", name="All your data was erased").wait_for()
    assert "public_key" in await page.get_by_label(re.compile("Signed JSON")).input_value()
    await page.goto("/console")
    await page.get_by_role("heading", name="Sign in").wait_for()


async def test_the_operator_sees_numbers_and_who_is_none_has_no_such_page(page: "Page", service: Service, scene: Scene):
    await sign_in(page, service.token("operator", scope=OPERATOR))
    await page.get_by_role("heading", name="Installation").wait_for()
    assert scene.user.name not in await page.content()
    async with scene.visitor() as other:
        await sign_in(other, scene.token(), "/console/installation")
        await other.get_by_role("heading", name="Not found").wait_for()


async def test_the_keyboard_alone_reaches_every_link_field_and_button(scene: Scene):
    things = scene.things
    async with scene.visitor(java_script_enabled=True) as typing:
        await typing.goto("/console/bank")
        await typing.keyboard.press("Tab")  # the way past the menu
        await typing.keyboard.press("Tab")  # the name of the service
        await typing.keyboard.press("Tab")
        await typing.keyboard.type(scene.token(OPERATOR))
        await typing.keyboard.press("Enter")
        await typing.get_by_role("heading", name="Bank", exact=True).wait_for()
        for path in [*things.pages(), "/console/installation"]:
            await typing.goto(path)
            assert await typing.evaluate(_REACHED) == []
            wanted = await typing.evaluate(_FOCUSABLE)
            reached = set()
            for _ in range(wanted + 5):
                await typing.keyboard.press("Tab")
                reached.add(await typing.evaluate(_FOCUSED))
            assert len(reached - {-1}) == wanted, path


_ALL = "[...document.querySelectorAll('a[href],button,input:not([type=hidden]),select,textarea,summary,[tabindex]')]"
_SEEN = f"{_ALL}.filter(each => each.checkVisibility())"
_FOCUSABLE = f"() => {_SEEN}.length"
_CONTRAST = {"runOnly": {"type": "rule", "values": ["color-contrast"]}}
_FOCUSED = f"() => {_ALL}.indexOf(document.activeElement)"
_REACHED = f"() => {_ALL}.filter(each => each.tabIndex < 0).map(each => each.outerHTML)"


async def test_axe_finds_nothing_serious_on_any_page_and_in_the_dark_no_faint_text(scene: Scene):
    from axe_playwright_python.async_playwright import Axe  # noqa: PLC0415 - may be missing

    found: dict[str, list[str]] = {}
    async with scene.visitor(java_script_enabled=True) as page:

        async def look(path: str) -> None:
            await page.goto(path)
            await page.evaluate("() => document.querySelectorAll('details').forEach(each => each.open = true)")
            await page.emulate_media(color_scheme="light")
            found[path] = _serious((await Axe().run(page)).response)
            await page.emulate_media(color_scheme="dark")  # which changes colours alone
            found[f"{path} in the dark"] = _serious((await Axe().run(page, options=_CONTRAST)).response)

        await look("/console/sign-in")
        await sign_in(page, scene.token(OPERATOR))
        for path in [*scene.things.pages(), "/console/installation", "/console/nowhere"]:
            await look(path)
    assert {path: faults for path, faults in found.items() if faults} == {}


def _serious(response: dict[str, Any]) -> list[str]:
    assert response["passes"], "it looked at nothing"
    return [
        f"{fault['id']}: {fault['nodes'][0]['html'][:200]}"
        for fault in response["violations"]
        if fault["impact"] in {"serious", "critical"}
    ]


async def test_nothing_runs_that_a_stranger_wrote(browser: "Browser", service: Service, serving: OwnService):
    mallory = await service.user("mallory <script>document.title='owned'</script>")
    things = await furnish(
        mallory, "<script>document.title='owned'</script><img src=x onerror=\"document.title='owned'\">"
    )
    async with visitor(browser, serving.base_url, java_script_enabled=True) as page:
        await sign_in(page, service.token(mallory.name))
        for path in things.pages():
            await page.goto(path)
            assert (await page.title()).endswith("casebank")
