"""A profile's daily token budget for language models, with an account of every call."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import date

from prometheus_client import Counter
from pydantic import JsonValue
from sqlalchemy import Date, Select, cast, func, select
from sqlalchemy.dialects.postgresql import Insert, insert
from sqlalchemy.sql.elements import ColumnElement

from retrieval.database.database import Database
from retrieval.database.rows import Rows
from retrieval.errors import ModelBudgetSpent, ModelError, Tokens
from retrieval.ports import Answer, Model, Reply
from retrieval.tables.kinds import LlmPurpose
from retrieval.tables.profiles import llm_usage, profiles
from writer.profiles import Profile

CALLS = Counter(
    "casebank_llm_calls_total", "Calls of a language model, by what for and how each ended", ["purpose", "how"]
)
TOKENS = Counter("casebank_llm_tokens_total", "Tokens that language models read and wrote", ["purpose", "which"])


@dataclass(frozen=True, slots=True)
class Account:
    """The account of the tokens that profiles use for language models.

    Attributes:
        tokens_per_day: budget of a profile without a setting of its own.
    """

    database: Database
    tokens_per_day: int

    def model(self, model: Model, profile: Profile, purpose: LlmPurpose) -> Model:
        """Returns a model that limits its calls to the profile's budget, and adds their tokens to the account."""
        return _Metered(self, model, profile, purpose)


@dataclass(frozen=True, slots=True)
class _Metered:
    """A model that answers only while the profile has tokens left; each call is added to the account.

    Concurrent calls do not see each other's tokens, so a day may exceed its budget by the calls in progress.
    """

    account: Account
    inner: Model
    profile: Profile
    purpose: LlmPurpose

    async def ask(self, instructions: str, material: JsonValue, answer: type[Answer]) -> Reply[Answer]:
        """Returns the model's answer; see `retrieval.ports.Model`.

        Raises:
            ModelBudgetSpent: the budget is used up, and the model was not called.
            UserErased: the user was erased, maybe after the model answered; the answer must not be kept.
            DatabaseUnavailable: the account cannot be read or written.
        """
        statement = left(self.profile.user_sub, self.profile.agent_key, self.account.tokens_per_day)
        async with self.account.database.as_user(self.profile.user_sub, self.profile.seen_at) as connection:
            tokens = int((await connection.execute(statement)).scalar_one())
        if tokens <= 0:
            CALLS.labels(self.purpose, ModelBudgetSpent.why).inc()
            raise ModelBudgetSpent("the profile's tokens of the day are used up")
        try:
            reply = await self.inner.ask(instructions, material, answer)
        except ModelError as error:
            await self._record(error.tokens, error.why)
            raise
        await self._record(reply.tokens, None)
        return reply

    async def _record(self, tokens: Tokens, failure: str | None) -> None:
        CALLS.labels(self.purpose, failure or "answered").inc()
        TOKENS.labels(self.purpose, "prompt").inc(tokens.prompt)
        TOKENS.labels(self.purpose, "completion").inc(tokens.completion)
        statement = add(self.profile, self.purpose, tokens, failures=int(failure is not None))
        async with self.account.database.as_user(self.profile.user_sub, self.profile.seen_at) as connection:
            await connection.execute(statement)


def today() -> ColumnElement[date]:
    """Returns the SQL expression for the day of the transaction, in UTC."""
    return cast(func.timezone("UTC", func.now()), Date)


def left(user_sub: str, agent_key: str, tokens_per_day: int) -> Select[int]:
    """Returns the statement that selects the tokens that the profile may still use today; negative after an overrun."""
    own = select(profiles.c.llm_tokens_per_day).where(
        profiles.c.user_sub == user_sub, profiles.c.agent_key == agent_key
    )
    spent = select(func.coalesce(func.sum(llm_usage.c.prompt_tokens + llm_usage.c.completion_tokens), 0)).where(
        llm_usage.c.user_sub == user_sub, llm_usage.c.agent_key == agent_key, llm_usage.c.day == today()
    )
    return select(func.coalesce(own.scalar_subquery(), tokens_per_day) - spent.scalar_subquery())


def add(profile: Profile, purpose: LlmPurpose, tokens: Tokens, *, failures: int) -> Insert:
    """Returns the statement that adds a call of a language model to what the profile has used today."""
    fresh = insert(llm_usage).values(
        user_sub=profile.user_sub,
        agent_key=profile.agent_key,
        day=today(),
        purpose=purpose,
        calls=1,
        failures=failures,
        prompt_tokens=tokens.prompt,
        completion_tokens=tokens.completion,
    )
    summed = ("calls", "failures", "prompt_tokens", "completion_tokens")
    return fresh.on_conflict_do_update(
        index_elements=["user_sub", "agent_key", "day", "purpose"],
        set_={name: llm_usage.c[name] + fresh.excluded[name] for name in summed},
    )


def by_day(user_sub: str, agent_key: str, days: int) -> Rows:
    """Returns the statement that selects the profile's account of the last ``days`` days, the newest day first."""
    shown: Sequence[str] = ("day", "purpose", "calls", "failures", "prompt_tokens", "completion_tokens")
    return (
        select(*(llm_usage.c[name] for name in shown))
        .where(llm_usage.c.user_sub == user_sub, llm_usage.c.agent_key == agent_key, llm_usage.c.day > today() - days)
        .order_by(llm_usage.c.day.desc(), llm_usage.c.purpose)
    )
