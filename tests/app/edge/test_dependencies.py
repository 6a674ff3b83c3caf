"""What every route asks for: who calls, for whom, and since when they may."""

import uuid
from datetime import UTC, datetime, timedelta

from app.auth.tokens import ACT_AS
from tests.service import Service


async def test_a_parameter_is_known_without_the_document_which_takes_half_a_second(service: Service):
    user = await service.user()
    assert (await user.http.get("/v1/cases", params={"limit": 1, "agent": "a"})).status_code == 200
    assert service.app.openapi_schema is None  # this test comes first: an error makes the document
    wrong = await user.http.get("/v1/cases", params={"agnet": "a"})
    assert wrong.status_code == 422
    assert "unknown parameter; the route has agent, " in wrong.text


async def test_a_parameter_that_is_given_twice_is_refused_by_its_name(service: Service):
    user = await service.user()
    twice = await user.http.get("/v1/facts", params={"kind": ["goal", "fact"]})
    assert twice.status_code == 422
    assert twice.json()["errors"] == [{"field": "query.kind", "message": "given more than once"}]


async def test_a_wrong_value_of_a_filter_is_told_once_with_the_values_that_there_are(service: Service):
    user = await service.user()
    wrong = await user.http.get("/v1/cases", params={"status": "redy"})
    message = "Input should be 'pending', 'ready', 'merged', 'pruned', 'dead' or 'any'"
    assert wrong.json()["errors"] == [{"field": "query.status", "message": message}]


async def test_a_request_that_no_route_takes_is_told_where_the_operations_are(service: Service):
    user = await service.user()
    nowhere, no_method = await user.http.get("/v1/case"), await user.http.get("/v1/retain")
    assert nowhere.json()["detail"] == "there is no such path, or it has no slash at its end; /docs has every operation"
    assert (no_method.json()["detail"], no_method.headers["Allow"]) == (
        "the path has no such method; the header Allow names its methods",
        "POST",
    )


async def test_a_path_with_a_slash_too_many_is_told_and_not_redirected_to_the_address_that_the_request_names(
    service: Service,
):
    user = await service.user()
    run = {"agent": "a", "task": "water the plants", "outcome": "success"}
    answer = await user.http.post("/v1/retain/", json=run, headers={"Host": "evil.example"})
    assert (answer.status_code, answer.headers.get("location")) == (404, None)
    assert answer.json()["detail"] == "there is no such path, or it has no slash at its end; /docs has every operation"


async def test_a_secret_in_a_path_that_there_is_not_is_not_repeated(service: Service):
    user = await service.user()
    answer = await user.http.get("/v1/ghp_0123456789abcdefghijklmnopqrstuvwxyzAB")
    assert (answer.status_code, "ghp_0123" in answer.text) == (404, False)


async def test_a_name_that_cannot_be_one_is_refused_in_words(service: Service):
    user = await service.user()
    session = {"agent": "a", "query": "the plants", "session_id": "monday//tuesday"}
    agent = {"agent": "a\nb", "query": "the plants"}
    known = {"tool": "read_file", "query": "a.py", "hash": "0" * 63}
    refused = [
        await user.http.post("/v1/retrieve", json=session),
        await user.http.get("/v1/sessions/monday//tuesday"),
        await user.http.post("/v1/retrieve", json=session | {"query": "the plants " * 500}),  # a large one
        await user.http.post("/v1/retrieve", json=agent),
        await user.http.post(f"/v1/runs/{uuid.uuid4()}/known", json=known),
    ]
    no_session = "must have no control character, and no part between slashes that is empty or only dots"
    assert [answer.json()["errors"][0]["message"] for answer in refused] == [
        *([no_session] * 3),
        "must have no control character",
        "must be 64 hexadecimal digits in lower case",
    ]


async def test_who_acts_for_another_is_the_actor_and_the_other_the_owner(service: Service):
    backend = await service.http(service.token("backend", scope=ACT_AS))
    user = f"user-{uuid.uuid4()}"
    run = {"agent": "a", "task": "water the plants", "outcome": "success"}
    answer = await backend.post("/v1/retain", json=run, headers={"X-Casebank-User": user})
    assert answer.status_code == 202
    owner = await service.user(user)
    ((source,),) = await owner.rows("SELECT source FROM cases WHERE user_sub = :user_sub")
    assert source == "backend"


async def test_a_caller_may_since_the_token_was_issued(service: Service):
    user = f"user-{uuid.uuid4()}"
    old = await service.http(service.token(user, age=timedelta(minutes=5)))
    async with service.runtime.database.as_eraser(user) as connection:
        await connection.exec_driver_sql(
            "INSERT INTO erasures (user_sub, erased_at, receipt)"
            " VALUES (encode(sha256(convert_to(current_setting('app.user_sub'), 'UTF8')), 'hex'), $1, '{}')",
            (datetime.now(UTC) - timedelta(minutes=1),),
        )
    assert (await old.get("/v1/cases")).status_code == 410
    assert (await (await service.http(service.token(user))).get("/v1/cases")).status_code == 200
