"""What is told has to do with the query: a bank that has nothing of the kind tells nothing, and says so."""

from tests.app.routes.conftest import fill, ids
from tests.service import User

KUBECTL = ["kubectl get pods in the staging namespace", "kubectl rollout restart deployment web"]


async def test_a_query_that_no_case_is_related_to_is_told_nothing_and_why(alice: User):
    await fill(alice, KUBECTL)
    answer = await alice.retrieve("Bake a chocolate cake")
    assert (answer["cases"], answer["memory_context"], answer["tokens"]) == ([], "", 0)
    assert "related" in answer["why_empty"]
    (logged,) = await alice.rows("SELECT candidate_ids, slate_propensity FROM decisions WHERE user_sub = :user_sub")
    assert (logged.candidate_ids, logged.slate_propensity) == ([], 1)


async def test_a_request_may_ask_for_more_similarity_and_not_for_less(alice: User):
    await fill(alice, KUBECTL)
    assert (await alice.retrieve("Bake a chocolate cake", min_similarity=-1))["cases"] == []
    assert (await alice.retrieve("restart the deployment", min_similarity=0.99))["cases"] == []


async def test_a_related_case_is_told_without_those_that_are_not(alice: User):
    related, _ = await fill(alice, ["restart the web server", "translate the release notes into French"])
    answer = await alice.retrieve("restart the mail server")
    assert (ids(answer), answer["why_empty"]) == ([related], None)


async def test_a_rare_word_in_common_is_enough(alice: User):
    (found, *_) = await fill(alice, ["restart the deployment of team walnut with kubectl", *KUBECTL])
    answer = await alice.retrieve("my grandmother bakes a chocolate cake with cinnamon, a walnut and butter")
    assert ids(answer) == [found]
    assert answer["cases"][0]["similarity"] < 0.2


async def test_a_word_that_many_cases_have_is_not(alice: User):
    await fill(alice, [f"please water fern number {number}" for number in range(6)])
    assert (await alice.retrieve("please repair the carburettor"))["cases"] == []
