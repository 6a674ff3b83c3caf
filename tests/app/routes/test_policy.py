"""The learned policy as its owner meets it: over HTTP, on the command line, and when a training is cut off."""

import asyncio
import json
import signal
import subprocess
import sys
from collections.abc import Awaitable, Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import typer
from sqlalchemy import insert, select, text
from typer.testing import CliRunner

from app.training.command import main as training
from app.training.processes import Trainings
from policy.decide import CANDIDATE, DEFAULT, REPLAYED, Budget
from policy.gate import judge
from retrieval.database.database import Database
from retrieval.tables.profiles import policies
from tests.cluster import one_postgres
from tests.logs import TRUTH, draw, put
from tests.policies import head, stored
from tests.policy.worlds import two_arms
from tests.processes import ROOT, casebank, ran, surroundings
from tests.service import AGENT, Service, User
from writer.training import lifecycle

TRAINED_WITHIN_S = 250
ENOUGH = 100
"""Rewarded decisions that a training wants."""
OUTSIDE = {"agent": AGENT}


async def give(user: User, new: dict[str, Any]) -> int:
    async with user.service.runtime.database.as_user(user.name, datetime.now(UTC)) as connection:
        return await lifecycle.add(connection, user.name, AGENT, new)


async def fill(user: User, count: int = ENOUGH) -> None:
    """Leaves enough rewarded decisions to learn from."""
    drawn = draw(count, {DEFAULT: None}, Budget(explore=0.5))
    await put(user.service.runtime.database, user.name, AGENT, drawn)


async def seen(user: User) -> dict[str, Any]:
    answer = await user.http.get("/v1/policy", params=OUTSIDE)
    assert answer.status_code == 200, answer.text
    return answer.json()


async def test_a_rewarded_decision_without_candidates_is_nothing_to_learn_from(alice: User):
    found = await alice.retrieve("water the roses")
    await alice.feedback(retrieval_id=found["retrieval_id"], reward=1)
    assert (await seen(alice))["rewarded_decisions"] == 0
    await alice.retain("water the roses")
    await alice.settle()
    found = await alice.retrieve("water the roses")
    await alice.feedback(retrieval_id=found["retrieval_id"], reward=1)
    assert (await seen(alice))["rewarded_decisions"] == 1


async def until(look: Callable[[], Awaitable[Any]]) -> Any:
    """The first result that counts as true."""
    async with asyncio.timeout(TRAINED_WITHIN_S):
        while not (found := await look()):  # noqa: ASYNC110 - the training is another process, and tells nobody
            await asyncio.sleep(0.25)
    return found


async def rows(user: User) -> list[Any]:
    async with user.service.runtime.database.as_user(user.name, datetime.now(UTC)) as connection:
        mine = select(policies).where(policies.c.user_sub == user.name).order_by(policies.c.version)
        return list((await connection.execute(mine)).all())


def reach(service: Service) -> dict[str, str]:
    """The settings of a command on the service's bank."""
    key = service.settings.master_key_bytes.hex()
    return {"DATABASE_URL": str(service.settings.database_url), "CASEBANK_MASTER_KEY": key}


# Over HTTP


async def test_who_never_trained_is_served_by_the_default(alice: User):
    by_default = {"serving": REPLAYED, "replay": None, "rewarded_decisions": 0, "policies": []}
    assert by_default.items() <= (await seen(alice)).items()


async def test_what_is_said_to_serve_is_what_retrieves_get_where_learning_is_on_and_where_it_is_off(alice: User):
    await alice.retain("water the garden")
    await alice.settle()
    await alice.http.put(f"/v1/profiles/{AGENT}", json={"explore": 0})
    await give(alice, stored("serving", head(vote=1.0)))

    async def told() -> tuple[str, set[str]]:
        served = [await alice.retrieve("water the garden") for _ in range(30)]
        return (await seen(alice))["serving"], {each["policy_version"] for each in served} - {REPLAYED}

    assert await told() == ("q-1", {"q-1"})
    await alice.http.put(f"/v1/profiles/{AGENT}", json={"learning": False})
    assert await told() == (REPLAYED, set())


async def test_every_version_is_listed_with_its_numbers_and_its_verdict_the_newest_first(alice: User):
    await alice.retain("water the garden")
    await give(alice, stored("rejected", metrics={"log_loss": 0.5}))
    await give(alice, stored("serving"))
    await give(alice, stored("candidate", blend=0.5))
    async with alice.service.runtime.database.as_user(alice.name, datetime.now(UTC)) as connection:
        for row in await lifecycle.live_policies(connection, alice.name, AGENT):
            await lifecycle.set_columns(connection, row, verdict={"outcome": "keep", "reasons": ["because"]})
    found = await seen(alice)
    assert found["serving"] == "q-2"
    listed = [(each["version"], each["status"], each["blend"]) for each in found["policies"]]
    assert listed == [(3, "candidate", 0.5), (2, "serving", 1), (1, "rejected", 1)]
    assert [each["verdict"] and each["verdict"]["reasons"] for each in found["policies"]] == [
        ["because"],
        ["because"],
        None,
    ]
    assert found["policies"][-1]["metrics"] == {"log_loss": 0.5}
    assert not {"weights", "checksum"} & set(found["policies"][0])


async def test_a_trial_tells_what_each_look_said_and_how_many_decisions_it_still_takes(alice: User):
    await alice.retain("water the garden")
    await give(alice, stored("candidate"))
    assert (await seen(alice))["policies"][0]["trial"] is None
    verdicts = (judge(*two_arms(n=500, uplift=0.1, share=0.5, seed=seed)) for seed in range(20))
    verdict = next(each for each in verdicts if each.outcome == "insufficient evidence" and each.outlook.more)
    async with alice.service.runtime.database.as_user(alice.name, datetime.now(UTC)) as connection:
        (row,) = await lifecycle.live_policies(connection, alice.name, AGENT)
        await lifecycle.set_columns(connection, row, verdict=verdict.as_json())
    trial = (await seen(alice))["policies"][0]["trial"]
    assert (trial["decisions"], trial["more"], trial["chance"]) == (500, verdict.outlook.more, verdict.outlook.chance)
    assert trial["more_days"] >= 0
    mine = [look for look in trial["looks"] if look["difference"] == "candidate - default"]
    looks = verdict.courses["candidate - default"].looks
    assert [(look["decisions"], look["z"]) for look in mine] == [(look.decisions, look.z) for look in looks]
    assert not any(look["passed"] or look["z"] >= look["bound"] for look in mine)
    async with alice.service.runtime.database.as_user(alice.name, datetime.now(UTC)) as connection:
        await lifecycle.set_status(connection, row, "rolled_back")
    ended = (await seen(alice))["policies"][0]["trial"]
    assert (ended["decisions"], ended["more"], ended["more_days"], ended["chance"]) == (500, None, None, 0)


async def test_a_rollback_takes_the_policy_and_its_trial_out_of_service_once(alice: User):
    await alice.retain("water the garden")
    await alice.settle()
    await give(alice, stored("serving", head(similarity=1.0)))
    await give(alice, stored("candidate"))
    (slot,) = (await alice.retrieve("garden"))["cases"]
    assert 0 < slot["q_value"] < 1
    answer = await alice.http.post("/v1/policy/rollback", json=OUTSIDE)
    assert (answer.status_code, answer.json()) == (200, {"version": 1})
    found = await seen(alice)
    assert found["serving"] == REPLAYED
    assert {each["status"] for each in found["policies"]} == {"rolled_back"}
    answer = await alice.retrieve("garden")
    assert (answer["policy_version"], answer["cases"][0]["q_value"]) == (REPLAYED, None)
    again = await alice.http.post("/v1/policy/rollback", json=OUTSIDE)
    assert again.status_code == 404
    assert again.json()["detail"] == "no policy of this profile serves"
    steps = "SELECT payload FROM audit WHERE user_sub = :user_sub AND action = 'decide_policy' ORDER BY id"
    assert {row.payload["status"] for row in await alice.rows(steps)} == {"rolled_back"}


async def test_a_training_runs_beside_the_service_and_the_listing_shows_what_became_of_it(alice: User):
    await fill(alice)
    answers = [await alice.http.post("/v1/policy/train", json=OUTSIDE) for _ in range(2)]
    assert [answer.status_code for answer in answers] == [202, 202]
    assert [answer.json()["status"] for answer in answers] == ["started", "running"]
    trained = (await until(lambda: listed(alice)))[0]
    assert (trained["version"], trained["decisions"]) == (1, ENOUGH)
    assert trained["status"] in {"candidate", "rejected"}  # so little may teach nothing, or nothing that shows
    assert trained["metrics"]["held_out"] > 0
    assert trained["verdict"] is None


async def test_a_training_judges_the_candidate_on_trial_and_the_listing_shows_the_verdict(alice: User):
    await fill(alice)
    await give(alice, stored("candidate"))
    answer = await alice.http.post("/v1/policy/train", json=OUTSIDE)
    assert (answer.status_code, answer.json()["status"]) == (202, "started")

    async def judged() -> Any:
        return (await seen(alice))["policies"][0]["verdict"]

    verdict = await until(judged)
    assert verdict["outcome"] == "insufficient evidence"
    assert verdict["reasons"]
    assert (await seen(alice))["serving"] == REPLAYED


async def listed(user: User) -> list[dict[str, Any]]:
    return (await seen(user))["policies"]


async def test_a_service_that_stops_ends_its_trainings_and_leaves_nothing_half_done(alice: User):
    await fill(alice)
    trainings = Trainings(alice.service.settings)
    assert [trainings.start(alice.name, AGENT) for _ in range(2)] == ["started", "running"]
    assert trainings.start(alice.name, "another") == "running"  # one of a user's at a time
    assert trainings.start(f"{alice.name}-b", "another") == "started"
    await asyncio.sleep(0.5)  # wherever it is then
    await trainings.close()
    assert await rows(alice) == []
    assert trainings.start(alice.name, AGENT) == "started"
    await trainings.close()


# On the command line


async def test_the_command_judges_one_profile_and_writes_down_what_became_of_it(alice: User, bob: User, tmp_path: Path):
    await fill(bob)
    await fill(alice, 0)
    await give(alice, stored("candidate", TRUTH.head))
    drawn = draw(600, {DEFAULT: None, CANDIDATE: TRUTH}, Budget(explore=0.0, canary=0.5), seed=2)
    await put(alice.service.runtime.database, alice.name, AGENT, drawn)
    home, around = alice.service.settings.home, reach(alice.service)
    options = ("--user", alice.name, "--agent", AGENT, "--out-dir", str(tmp_path / "out"))
    done = await asyncio.to_thread(casebank, home, "train", *options, **around)
    assert alice.name in done.stdout
    (told,) = json.loads((tmp_path / "out" / "train.json").read_text())
    assert (told["user_sub"], told["version"], told["decisions"]) == (alice.name, 1, 600)
    assert told["outcome"] == told["verdict"]["outcome"] == "promote"
    (row,) = await rows(alice)
    assert (row.status, row.verdict) == ("serving", told["verdict"])
    assert await rows(bob) == []

    shown = await asyncio.to_thread(casebank, home, "policy", "show", *options[:4], **around)
    assert "q-1" in shown.stdout
    assert "serving" in shown.stdout
    assert told["verdict"]["reasons"][0] in shown.stdout
    assert "looks at candidate - default" in shown.stdout


async def test_the_command_rolls_back_once_and_then_says_that_nothing_serves(alice: User):
    await alice.retain("water the garden")
    await give(alice, stored("serving"))
    home, around = alice.service.settings.home, reach(alice.service)
    words = ("policy", "rollback", "--user", alice.name, "--agent", AGENT)
    first, second = [await asyncio.to_thread(ran, home, *words, **around) for _ in range(2)]
    assert (first.returncode, first.stdout) == (0, "q-1 serves no more\n")
    database, *refused = second.stderr.splitlines()
    assert database.startswith("casebank: database: ")
    assert (second.returncode, refused) == (1, ["casebank: no policy of this profile serves"])
    assert [row.status for row in await rows(alice)] == ["rolled_back"]
    entries = (await alice.http.get("/v1/audit")).json()["entries"]
    actors = [entry["actor"] for entry in entries if entry["action"] == "decide_policy"]
    assert actors == ["casebank policy rollback"]


# Cut off


@one_postgres
async def test_a_training_that_is_killed_as_it_stores_leaves_everything_as_it_was(alice: User):
    await fill(alice)
    database: Database = alice.service.runtime.database
    command = [sys.executable, "-m", "app.cli", "train", "--user", alice.name, "--agent", AGENT]
    environment = surroundings(alice.service.settings.home, **reach(alice.service))
    waiting = text("SELECT count(*) FROM pg_locks WHERE NOT granted AND locktype = 'transactionid'")

    async def blocked() -> bool:
        async with database.engine.connect() as other:
            return bool(await other.scalar(waiting))

    async with database.engine.connect() as connection:  # holds the place that the trainer's row is to have
        enter = text("SELECT casebank_enter(:user, now())")
        await connection.execute(enter, {"user": alice.name})
        first = {"user_sub": alice.name, "agent_key": AGENT, "version": 1, **stored("retired")}
        await connection.execute(insert(policies).values(first))
        process = subprocess.Popen(  # noqa: ASYNC220 - it is the process that is under test
            command, env=environment, cwd=ROOT, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
        )
        try:
            await until(blocked)
            assert process.poll() is None
        finally:
            process.kill()
            assert process.wait() == -signal.SIGKILL
        await connection.rollback()
    assert await rows(alice) == []
    untouched = {"serving": REPLAYED, "replay": None, "rewarded_decisions": ENOUGH, "policies": []}
    assert untouched.items() <= (await seen(alice)).items()


def test_half_a_profile_or_an_unknown_engine_is_refused():
    program = typer.Typer()
    program.command()(training)
    for options in (("--user", "somebody"), ("--engine", "abacus")):
        refused = CliRunner().invoke(program, options)
        assert refused.exit_code == 2
        assert "Invalid value" in refused.output
