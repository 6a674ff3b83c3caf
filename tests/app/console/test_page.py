"""Every page and form: what its owner sees and may do, and what nobody else does."""

from urllib.parse import urlsplit

import httpx
import pytest
from fastapi.routing import iter_route_contexts

from app.console.page import HEADERS
from app.console.page import Page as PageRoute
from tests.app.console.conftest import HERE, sign_in, stranger
from tests.app.console.furnish import Furnished, furnish, nobodys
from tests.app.console.pages import Page, send
from tests.service import Service, User

HOSTILE = (
    "\"><script>alert(1)</script><img src=x onerror=alert(1)>'javascript:alert(1)' {{ 7*7 }} \u202eevil\u202c &amp;"
)


async def walk(http: httpx.AsyncClient, begin: str) -> dict[str, str]:
    """Every page that links lead to from one, by its address; none is anywhere else."""
    seen: dict[str, str] = {}
    ahead = [begin]
    while ahead:
        address = ahead.pop()
        if address.partition("#")[0] in seen or address.startswith("#"):
            continue
        answer = await http.get(address)
        assert answer.status_code == 200, (address, answer.text)
        seen[address] = answer.text
        for leads in Page(answer.text).links:
            assert leads.startswith(("/console", "?", "#")), (address, leads)
            ahead.append(urlsplit(address).path + leads if leads.startswith("?") else leads)
    return seen


async def test_hostile_words_in_every_field_are_text_on_every_page(service: Service):
    mallory = await service.user(f"mallory {HOSTILE}")
    things = await furnish(mallory, HOSTILE, agent=f"agent {HOSTILE}"[:180])
    http = await sign_in(service, service.token(mallory.name))
    pages = await walk(http, "/console")
    search = "/console/bank"
    pages[search] = (await http.get(search, params={"q": HOSTILE, "agent": things.agent})).text
    changed = f"/console/procedures/{things.procedure_id}"
    pages[changed] = (await http.get(changed, params={"before": "1", "after": "2"})).text
    assert len(pages) >= 14
    shown = 0
    for address, text in pages.items():
        page = Page(text)
        assert not {"script", "img", "iframe", "object", "embed", "style", "base"} & page.elements, address
        assert not [name for name in page.attributes if name.startswith("on") or name == "style"], address
        assert all(each.startswith(("/console", "?", "#")) for each in page.addresses), address
        assert "\u202e" not in text, address
        shown += "&lt;script&gt;alert(1)" in text and "⟨U+202E⟩" in text
    assert shown >= 12


async def test_no_character_that_is_not_seen_hides_text_or_its_page(alice: User, console: httpx.AsyncClient):
    hidden = {
        "tags": "\U000e0053\U000e0045",
        "selectors": "\U000e0153",
        "filler": "\u3164",
        "more": "\ufe0f\ufe0f\ufe0e",
    }
    half = {"name": "sql", "arguments": '{"half": "\\ud83d"}'}  # of an emoji, as models cut them
    turns = [
        {"role": "user", "content": "".join(f"{name}{text}" for name, text in hidden.items())},
        {"role": "user", "content": "I \u2764\ufe0f it"},
        {"role": "assistant", "content": None, "tool_calls": [{"id": "1", "type": "function", "function": half}]},
    ]
    answer = await alice.http.post("/v1/sessions/monday/turns", json={"agent": "operator", "turns": turns})
    assert answer.status_code == 200, answer.text
    page = await console.get("/console/session?name=monday")
    assert page.status_code == 200
    assert "tags⟨U+E0053⟩⟨U+E0045⟩selectors⟨U+E0153⟩filler⟨U+3164⟩more\ufe0f⟨U+FE0F⟩⟨U+FE0E⟩" in page.text
    assert "I \u2764\ufe0f it" in page.text
    assert "⟨U+D83D⟩" in page.text


async def test_every_answer_lets_a_browser_load_from_here_alone_and_run_nothing(
    service: Service, alice: User, console: httpx.AsyncClient
):
    things = await furnish(alice)
    nobody = await stranger(service)
    answers = [await console.get(address) for address in things.pages()]
    answers += [await nobody.get("/console/sign-in"), await nobody.get("/console"), await console.get("/console/no")]
    answers.append(await console.post("/console/known/export", headers={"Origin": HERE}))
    for answer in answers:
        policy = answer.headers["content-security-policy"]
        assert "default-src 'none'" in policy
        assert "script" not in policy
        assert "unsafe" not in policy
        assert {name: answer.headers[name] for name in HEADERS} == HEADERS
    css = await nobody.get("/console/static/console.css")
    assert css.status_code == 200
    assert "url(" not in css.text
    assert (await nobody.get("/console/static/..%2Fpage.py")).status_code == 404


async def test_a_static_file_is_kept_under_its_own_version_alone(service: Service):
    """Of two replicas during an upgrade, one has another file than the page names that the other one made."""
    http = await stranger(service)
    (own,) = [each for each in Page((await http.get("/console/sign-in")).text).addresses if "console.css" in each]
    assert "immutable" in (await http.get(own)).headers["cache-control"]
    for other in (own.partition("?")[0], f"{own.partition('?')[0]}?v=0123456789ab"):
        answer = await http.get(other)
        assert (answer.status_code, answer.headers["cache-control"]) == (200, "no-store")


async def test_without_a_visit_every_page_and_form_leads_to_sign_in(service: Service, alice: User):
    http = await stranger(service)
    open_to_all = {"/console/sign-in", "/console/link", "/console/static/{name}", "/console/{rest:path}"}
    asked = 0
    for route in iter_route_contexts(service.app.routes):
        if not isinstance(route.original_route, PageRoute) or route.path in open_to_all:
            continue
        path = route.path.format_map(_Filled())
        for method in route.methods or ():
            answer = await http.request(method, path, headers={"Origin": HERE}, params={"name": "x"})
            assert answer.status_code == 303, (method, path)
            assert answer.headers["location"].startswith("/console/sign-in?next=/console"), (method, path)
            asked += 1
    assert asked >= 25


class _Filled(dict[str, str]):
    def __missing__(self, name: str) -> str:
        return "01990a51-6a0e-7f3a-b1f2-7b8f5a0c1d2e"


async def test_what_is_another_users_answers_like_what_nobody_has(service: Service, alice: User, bob: User):
    hers, nothing = await furnish(alice), nobodys()
    await bob.retain("tune a piano")
    await bob.settle()
    http = await sign_in(service, service.token(bob.name))
    for theirs, unknown in zip(hers.named(), nothing.named(), strict=True):
        pair = [await http.get(address) for address in (theirs, unknown)]
        assert [each.status_code for each in pair] == [404, 404], theirs
        assert pair[0].text == pair[1].text
    user = Page((await http.get("/console/user")).text)
    token = user.forms[0].fields["form_token"]
    for theirs, fields in _forms(hers):
        answer = await http.post(theirs, data={"form_token": token, **fields}, headers={"Origin": HERE})
        assert answer.status_code == 404, theirs
    assert (await alice.case(hers.case_id))["status"] == "ready"


def _forms(things: Furnished) -> list[tuple[str, dict[str, str]]]:
    return [
        (f"/console/cases/{things.case_id}/tags", {"tags": "mine"}),
        (f"/console/cases/{things.case_id}/delete", {"sure": "yes"}),
        (f"/console/procedures/{things.procedure_id}/pin", {"version": "1", "pinned": "yes"}),
        (f"/console/procedures/{things.procedure_id}/retire", {"sure": "yes"}),
        ("/console/session/delete", {"sure": "yes", "name": things.session}),
        (f"/console/facts/{things.fact_id}/delete", {"sure": "yes"}),
        (f"/console/knowledge/{things.knowledge_id}/delete", {"sure": "yes"}),
        ("/console/policy/roll-back", {"sure": "yes"}),
    ]


async def test_a_form_without_the_visits_token_or_from_elsewhere_changes_nothing(
    service: Service, alice: User, console: httpx.AsyncClient
):
    things = await furnish(alice)
    other = await sign_in(service, service.token(alice.name))
    foreign = Page((await other.get("/console/user")).text).forms[0].fields["form_token"]
    own = Page((await console.get("/console/user")).text).forms[0].fields["form_token"]
    refused = [
        ({"Origin": HERE}, {}),
        ({"Origin": HERE}, {"form_token": foreign}),
        ({"Origin": "http://evil.example"}, {"form_token": own}),
        ({}, {"form_token": own}),
    ]
    forms = [*_forms(things), ("/console/user/settings", {"k": "7"}), ("/console/known/erase", {"name": alice.name})]
    for path, fields in [*forms, ("/console/known/export", {}), ("/console/sign-out", {})]:
        for headers, token in refused:
            answer = await console.post(path, data={**fields, **token}, headers=headers)
            assert answer.status_code == 403, (path, headers, token)
    assert (await alice.case(things.case_id))["tags"] != ["mine"]
    assert (await alice.http.get("/v1/profiles/operator")).json()["k"] == 4


@pytest.mark.parametrize(
    ("field", "typed", "told"),
    [
        ("k", "0.5", "“Cases on a slate” must be a whole number"),
        ("explore", "often", "“Share of slates changed at random” must be a number"),
        ("tool_kinds", "peek: read\npoke write", "each line of “Kinds of tools” must be “tool: kind”"),
        ("tool_kinds", '"peek: read', "each line of “Kinds of tools” must be “tool: kind”"),
    ],
)
async def test_a_setting_that_cannot_be_read_is_refused_with_what_is_wanted(
    alice: User, console: httpx.AsyncClient, field: str, typed: str, told: str
):
    await furnish(alice)
    form = Page((await console.get("/console/user")).text).form("/console/user/settings")
    answer = await send(console, form, **{field: typed})
    assert answer.status_code == 422
    assert told in answer.text


async def test_a_form_with_a_character_that_no_text_may_have_is_refused(alice: User, console: httpx.AsyncClient):
    things = await furnish(alice)
    token = Page((await console.get("/console/user")).text).forms[0].fields["form_token"]
    for path, fields in _forms(things):
        odd = {"form_token": token, **fields, "name": "a\0b"}
        assert (await console.post(path, data=odd, headers={"Origin": HERE})).status_code == 422, path


async def test_forms_send_a_character_that_no_reader_sees_unchanged(alice: User, console: httpx.AsyncClient):
    word = "می\u200cروم"  # in Persian it is part of the word
    things = await furnish(alice, agent=word)
    assert (await alice.http.patch(f"/v1/cases/{things.case_id}", json={"tags": [word]})).is_success
    bank = Page((await console.get(f"/console/bank?q={word}")).text).form("/console/bank")
    assert (bank.fields["agent"], bank.fields["q"]) == (word, word)
    case = Page((await console.get(f"/console/cases/{things.case_id}")).text)
    await send(console, case.form(f"/console/cases/{things.case_id}/tags"))
    assert (await alice.case(things.case_id))["tags"] == [word]
    turns = {"agent": word, "turns": [{"role": "user", "content": "hello"}]}
    assert (await alice.http.post(f"/v1/sessions/{word}/turns", json=turns)).is_success
    form = Page((await console.get(f"/console/session?name={word}")).text).form("/console/session/delete")
    assert (await send(console, form, **form.boxes)).status_code == 303
    assert (await alice.http.get(f"/v1/sessions/{word}")).status_code == 404


@pytest.mark.parametrize("tag", ["Berlin, Germany", 'the "blue" one', '"', '5" pipe, bent', "plain"])
async def test_a_tag_with_a_comma_or_quotes_is_sent_back_as_it_is(alice: User, console: httpx.AsyncClient, tag: str):
    things = await furnish(alice)
    assert (await alice.http.patch(f"/v1/cases/{things.case_id}", json={"tags": [tag, "other"]})).is_success
    form = Page((await console.get(f"/console/cases/{things.case_id}")).text).form(
        f"/console/cases/{things.case_id}/tags"
    )
    await send(console, form, tags=f"{form.fields['tags']}, new")
    assert (await alice.case(things.case_id))["tags"] == [tag, "other", "new"]


async def test_tags_are_set_and_a_case_is_deleted_only_where_the_box_is_ticked(alice: User, console: httpx.AsyncClient):
    things = await furnish(alice)
    page = Page((await console.get(f"/console/cases/{things.case_id}")).text)
    answer = await send(console, page.form(f"/console/cases/{things.case_id}/tags"), tags="seen, checked ,")
    assert answer.headers["location"] == f"/console/cases/{things.case_id}?agent=operator"
    assert (await alice.case(things.case_id))["tags"] == ["seen", "checked"]
    form = page.form(f"/console/cases/{things.case_id}/delete")
    assert (await send(console, form)).status_code == 422
    assert (await send(console, form, **form.boxes)).status_code == 303
    assert (await alice.http.get(f"/v1/cases/{things.case_id}")).status_code == 404


async def test_a_version_is_pinned_and_let_go_of_and_a_procedure_retired(alice: User, console: httpx.AsyncClient):
    things = await furnish(alice)
    path, api = f"/console/procedures/{things.procedure_id}", f"/v1/procedures/{things.procedure_id}"
    page = Page((await console.get(path)).text)
    assert (await send(console, page.form(f"{path}/pin"))).status_code == 303
    versions = (await alice.http.get(f"{api}/versions")).json()["versions"]
    assert [each["version"] for each in versions if each["pinned"]] == [versions[0]["version"]]
    form = Page((await console.get(path)).text).form(f"{path}/retire")
    assert (await send(console, form, **form.boxes)).status_code == 303
    versions = (await alice.http.get(f"{api}/versions")).json()["versions"]
    assert versions[0]["status"] == "retired"


async def test_what_two_versions_of_a_procedure_differ_in_is_shown(alice: User, console: httpx.AsyncClient):
    things = await furnish(alice)
    answer = await console.get(f"/console/procedures/{things.procedure_id}?before=1&after=2")
    assert {"del", "ins"} <= Page(answer.text).elements


async def test_a_search_shows_what_the_agent_would_be_shown_and_is_not_logged(alice: User, console: httpx.AsyncClient):
    things = await furnish(alice)
    before = await alice.rows("SELECT count(*) FROM decisions WHERE user_sub = :user_sub")
    answer = await console.get("/console/bank", params={"q": "restart the web server"})
    assert things.case_id in answer.text
    assert "Rank by meaning" in answer.text
    assert await alice.rows("SELECT count(*) FROM decisions WHERE user_sub = :user_sub") == before
    assert (await alice.retrieve("restart the web server"))["cases"][0]["case_id"] in answer.text


async def test_a_decision_says_of_each_candidate_why(alice: User, console: httpx.AsyncClient):
    things = await furnish(alice)
    text = (await console.get(f"/console/decisions/{things.retrieval_id}")).text
    assert "Chosen: it shares “" in text
    assert "Slates by the present policies" in text


async def test_a_decision_shows_which_of_its_cases_the_run_followed(alice: User, console: httpx.AsyncClient):
    things = await furnish(alice)
    followed = "UPDATE decision_slots SET agreed = 0.83 WHERE user_sub = :user_sub RETURNING place"
    assert await alice.rows(followed)
    text = (await console.get(f"/console/decisions/{things.retrieval_id}")).text
    assert '<th scope="col" class="n">Plan followed</th>' in text
    assert '<td class="n">83 %</td>' in text


async def test_settings_are_explained_changed_and_refused_with_their_name(alice: User, console: httpx.AsyncClient):
    await furnish(alice)
    form = Page((await console.get("/console/user")).text).form("/console/user/settings")
    assert (await send(console, form)).status_code == 303  # as they are
    before = (await alice.http.get("/v1/profiles/operator")).json()
    changed = {"k": "7", "ttl_days": "30", "explore": "0.1", "rewrite": "llm", "tool_kinds": "fetch: read"}
    changed |= {"facts_share": "0.3"}
    form.fields.pop("learning")  # its box is not ticked any more
    assert (await send(console, form, **changed)).status_code == 303
    after = (await alice.http.get("/v1/profiles/operator")).json()
    wanted = {"k": 7, "ttl_days": 30, "explore": 0.1, "rewrite": "llm", "tool_kinds": {"fetch": "read"}}
    wanted |= {"shares": {**before["shares"], "facts": 0.3}}
    assert after == {**before, **wanted, "learning": False}
    wrong = await send(console, form, k="many")
    assert (wrong.status_code, "Cases on a slate" in wrong.text) == (422, True)
    wrong = await send(console, form, explore="7")
    assert (wrong.status_code, "Share of slates changed at random" in wrong.text) == (422, True)
    wrong = await send(console, form, session_share="7")
    assert (wrong.status_code, "Share for the session" in wrong.text) == (422, True)


@pytest.mark.parametrize("name", ["two\nlines", " spaced ", "\u2028", '"quoted"', '"', "a:b", "plain"])
async def test_the_kind_of_a_tool_of_any_name_is_kept_and_saved_by_the_form(
    alice: User, console: httpx.AsyncClient, name: str
):
    await furnish(alice)
    answer = await alice.http.put("/v1/profiles/operator", json={"tool_kinds": {name: "read"}})
    assert answer.is_success, answer.text
    form = Page((await console.get("/console/user")).text).form("/console/user/settings")
    assert (await send(console, form, tool_kinds=f"{form.fields['tool_kinds']}fetch: search")).status_code == 303
    kinds = (await alice.http.get("/v1/profiles/operator")).json()["tool_kinds"]
    assert kinds == {name: "read", "fetch": "search"}


async def test_memory_that_is_no_longer_read_is_still_written_where_the_form_says_so(
    alice: User, console: httpx.AsyncClient
):
    await furnish(alice)
    form = Page((await console.get("/console/user")).text).form("/console/user/settings")
    form.fields.pop("enabled")
    assert (await send(console, form)).status_code == 303
    profile = (await alice.http.get("/v1/profiles/operator")).json()
    assert (profile["enabled"], profile["writing"]) == (False, True)


async def test_an_export_is_a_file_with_everything(alice: User, console: httpx.AsyncClient):
    things = await furnish(alice)
    answer = await send(console, Page((await console.get("/console/known")).text).form("/console/known/export"))
    assert answer.headers["content-disposition"].startswith('attachment; filename="casebank-')
    assert things.case_id in answer.text
    assert answer.text.count("\n") > 10


async def test_an_erasure_takes_ones_name_and_gives_the_receipt_and_ends_the_visit(
    service: Service, alice: User, bob: User, console: httpx.AsyncClient
):
    await furnish(alice)
    kept = await bob.retain("tune a piano")
    form = Page((await console.get("/console/known")).text).form("/console/known/erase")
    assert (await send(console, form, name=bob.name)).status_code == 422
    answer = await send(console, form, name=alice.name)
    assert answer.status_code == 200
    assert "public_key" in answer.text
    assert alice.name not in answer.text
    assert (await console.get("/console/user")).status_code == 303
    assert (await alice.http.get("/v1/cases")).status_code == 410
    assert (await bob.case(kept))["task"] == "tune a piano"


async def test_a_policy_is_rolled_back_by_hand_and_never_promoted(alice: User, console: httpx.AsyncClient):
    await furnish(alice)
    page = Page((await console.get("/console/policy")).text)
    assert not [form.action for form in page.forms if "promote" in form.action]
    form = page.form("/console/policy/roll-back")
    assert (await send(console, form)).status_code == 422
    assert (await send(console, form, **form.boxes)).status_code == 303
    assert (await alice.http.get("/v1/policy", params={"agent": "operator"})).json()["serving"] != "q-1"


async def test_a_trial_says_how_far_it_is_and_what_each_look_found(alice: User, console: httpx.AsyncClient):
    await furnish(alice)
    trial = (await alice.http.get("/v1/policy", params={"agent": "operator"})).json()["policies"][0]["trial"]
    text = (await console.get("/console/policy")).text
    assert f"{trial['decisions']:,} rewarded decisions since the trial began" in text
    assert "Probability of promotion before the trial ends" in text
    looks = text.split("Checks of the gate so far</summary>")[1].split("</details>")[0]
    assert looks.count("the policy on trial minus the order that replay chose") == sum(
        look["difference"] == "candidate - default" for look in trial["looks"]
    )


async def test_a_trial_that_the_gate_has_not_looked_at_says_so(alice: User, console: httpx.AsyncClient):
    await furnish(alice)
    await alice.rows("UPDATE policies SET verdict = NULL WHERE user_sub = :user_sub RETURNING version")
    assert "The gate has not checked it yet" in (await console.get("/console/policy")).text


async def test_a_decision_names_the_cases_that_each_live_policy_would_serve(alice: User, console: httpx.AsyncClient):
    things = await furnish(alice)
    await alice.rows("UPDATE decision_slots SET place = place + 10 WHERE user_sub = :user_sub RETURNING place")
    decision = (await alice.http.get(f"/v1/decisions/{things.retrieval_id}")).json()
    text = (await console.get(f"/console/decisions/{things.retrieval_id}")).text
    (section,) = (part for part in text.split("<h2>") if part.startswith("Slates by the present policies"))
    assert decision["would_serve"]
    for policy in decision["would_serve"]:
        assert policy["policy_version"] in section


async def test_the_operator_sees_the_numbers_of_all_and_no_word_of_anybody(alice: User, operator: httpx.AsyncClient):
    things = await furnish(alice, "restart the xylophone", agent="secret-agent")
    answer = await operator.get("/console/installation")
    assert answer.status_code == 200
    for told in ("Policies", "cases waiting", "Jobs", "in service", "on trial"):
        assert told in answer.text
    for word in ("xylophone", alice.name, "secret-agent", things.case_id, things.procedure_id):
        assert word not in answer.text
    for address in things.named():
        assert (await operator.get(address)).status_code == 404
    assert (await operator.get("/console")).headers["location"] == "/console/installation"


async def test_who_is_no_operator_finds_no_installation(console: httpx.AsyncClient):
    answer = await console.get("/console/installation")
    assert answer.status_code == 404
    assert "Installation" not in (await console.get("/console/user")).text


async def test_all_pages_together_weigh_little(alice: User, console: httpx.AsyncClient):
    things = await furnish(alice)
    seen = [await console.get(address) for address in things.pages()]
    static = [await console.get(f"/console/static/{name}") for name in ("console.css", "icon.svg")]
    assert sum(len(answer.content) for answer in seen + static) <= 400_000


async def test_what_is_wrong_in_an_address_is_said_on_a_page(console: httpx.AsyncClient):
    for address, status in (("/console/cases/none", 422), ("/console/nowhere", 404), ("/console/decisions?arm=x", 422)):
        answer = await console.get(address)
        assert (answer.status_code, answer.headers["content-type"]) == (status, "text/html; charset=utf-8")


async def test_the_console_with_a_slash_leads_to_the_console_at_any_of_its_addresses(console: httpx.AsyncClient):
    answer = await console.get("/console/")
    assert (answer.status_code, answer.headers["location"]) == (303, "/console")


@pytest.mark.parametrize("form", ["x" * 70_000, "=&" * 300, b"\xff"])
async def test_what_no_form_sends_is_refused(console: httpx.AsyncClient, form: str | bytes):
    headers = {"Origin": HERE, "Content-Type": "application/x-www-form-urlencoded"}
    answer = await console.post("/console/sign-out", content=form, headers=headers)
    assert answer.status_code in {403, 413, 422}
