"""The words of rows: what a user wrote and the database need not search, sealed with the user's key, or as it is.

Which of both is written is a setting; which of both a row has, it says itself. Beside sealed words stand tokens of
them, keyed hashes: equal steps, runs and queries of one user are still seen to be equal, and nobody can try words out.
"""

import hmac
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any
from uuid import UUID

from retrieval.database.database import Database
from retrieval.database.fast_path import FastConnection
from retrieval.sealed import CaseWords, effects_of
from retrieval.text import folded
from writer.privacy.keys import Keyring, UserKey
from writer.privacy.seal import (
    CASE_WORDS,
    DECISION_WORDS,
    FACT,
    FINDING,
    KNOWLEDGE,
    RUN_STEP,
    RUN_WORDS,
    SESSION_SUMMARY,
    TOLD,
    TURN,
    Packed,
    seal,
    unseal,
)

TOKEN_BYTES = 12
"""Of a keyed hash: two different steps of one user share a token once in some 10^14 pairs of plans."""
_GROUP_BYTES = 7
_NUMBER_BYTES = 8


@dataclass(frozen=True, slots=True)
class Words:
    """Seals and opens the words of one user's rows; see `retrieval.sealed.UserSeal`."""

    user_sub: str
    key: UserKey

    @property
    def key_id(self) -> UUID:
        """Name of the key."""
        return self.key.key_id

    def seal_case(self, case_id: UUID, task: str, plan: Sequence[str], effects: Sequence[str]) -> dict[str, object]:
        """Returns the columns of a case that hold its words, sealed; of its effects those that are steps of the plan.

        Names of tools stay.
        """
        words = {"task": task, "plan": list(plan)}
        blob = seal(words, self.key.key, user_sub=self.user_sub, case_id=case_id, of=CASE_WORDS)
        tokens = {step: self.token(step) for step in plan}
        return {
            "task": "",
            "plan": [tokens[step] for step in plan],
            "effects": [tokens.get(effect, effect) for effect in effects],
            "words": blob,
            "message_hash": self._keyed(b"run", "\n".join((task, *plan))),
        }

    def open_case(self, case_id: UUID, words: bytes) -> CaseWords:
        """Returns the words of a case.

        Raises:
            SealBroken: they belong to another case, user or key, or were changed.
        """
        said = unseal(words, self.key.key, user_sub=self.user_sub, case_id=case_id, of=CASE_WORDS)
        return CaseWords(said["task"], said["plan"])

    def opened(self, row: Mapping[Any, Any]) -> dict[str, Any]:
        """Returns a row of a case with its words in their columns."""
        values: dict[str, Any] = {name: value for name, value in row.items() if name != "words"}
        if row["words"] is None:
            return values
        said = self.open_case(row["id"], row["words"])
        opened = {"task": said.task, "plan": said.plan}
        if "effects" in row:
            opened["effects"] = effects_of(row["effects"], row["plan"], said)
        return {**values, **opened}

    def seal_query(self, decision_id: UUID, query: str, rewritten: str | None) -> bytes:
        """Returns the words of a decision, sealed."""
        words = {"query": query, "rewritten": rewritten}
        return seal(words, self.key.key, user_sub=self.user_sub, case_id=decision_id, of=DECISION_WORDS)

    def open_query(self, row: Mapping[Any, Any]) -> dict[str, Any]:
        """Returns a row of a decision with its words in their columns.

        Raises:
            SealBroken: they belong to another decision, user or key, or were changed.
        """
        values: dict[str, Any] = {name: value for name, value in row.items() if name != "words"}
        if row["words"] is None:
            return values
        said = unseal(row["words"], self.key.key, user_sub=self.user_sub, case_id=row["id"], of=DECISION_WORDS)
        return {**values, **said}

    def seal_told(self, decision_id: UUID, text: str) -> bytes:
        """Returns what a decision told, sealed, whatever the setting: nobody searches it."""
        return seal(text, self.key.key, user_sub=self.user_sub, case_id=decision_id, of=TOLD)

    def open_told(self, decision_id: UUID, told: bytes) -> str:
        """Returns what a decision told.

        Raises:
            SealBroken: it belongs to another decision, user or key, or was changed.
        """
        return str(unseal(told, self.key.key, user_sub=self.user_sub, case_id=decision_id, of=TOLD))

    def seal_run(self, run_id: UUID, task: str) -> bytes:
        """Returns the words of a run under way, sealed, whatever the setting: nobody searches them."""
        return seal({"task": task}, self.key.key, user_sub=self.user_sub, case_id=run_id, of=RUN_WORDS)

    def open_run(self, run_id: UUID, words: bytes) -> str:
        """Returns the task of a run under way.

        Raises:
            SealBroken: the words belong to another run, user or key, or were changed.
        """
        return str(unseal(words, self.key.key, user_sub=self.user_sub, case_id=run_id, of=RUN_WORDS)["task"])

    def seal_step(self, run_id: UUID, number: int, trace: Packed) -> bytes:
        """Returns a step of a run under way, sealed for its place in it."""
        return seal(trace, self.key.key, user_sub=self.user_sub, case_id=run_id, of=RUN_STEP + b"%d" % number)

    def open_step(self, run_id: UUID, number: int, payload: bytes) -> dict[str, Any]:
        """Returns the tool trace of a step.

        Raises:
            SealBroken: it belongs to another place, run, user or key, or was changed.
        """
        of = RUN_STEP + b"%d" % number
        trace: dict[str, Any] = unseal(payload, self.key.key, user_sub=self.user_sub, case_id=run_id, of=of)
        return trace

    def seal_finding(self, run_id: UUID, step: int, part: int, payload: object) -> bytes:
        """Returns a finding of a run, sealed for its place in it, whatever the setting."""
        of = FINDING + b"%d %d" % (step, part)
        return seal(payload, self.key.key, user_sub=self.user_sub, case_id=run_id, of=of)

    def open_finding(self, run_id: UUID, step: int, part: int, payload: bytes) -> dict[str, Any]:
        """Returns what a finding says.

        Raises:
            SealBroken: it belongs to another place, run, user or key, or was changed.
        """
        of = FINDING + b"%d %d" % (step, part)
        said: dict[str, Any] = unseal(payload, self.key.key, user_sub=self.user_sub, case_id=run_id, of=of)
        return said

    def number_of(self, purpose: str, text: str) -> int:
        """Returns a number of 64 bits that equal texts share, to the letter, and that tells no word."""
        keyed = hmac.digest(self.key.key, f"{purpose}\n{text}".encode("utf-8", "surrogatepass"), "sha256")
        return int.from_bytes(keyed[:_NUMBER_BYTES], "big", signed=True)

    def seal_turn(self, session_id: UUID, number: int, message: Packed) -> bytes:
        """Returns a turn of a session, sealed for its place in it, whatever the setting."""
        return seal(message, self.key.key, user_sub=self.user_sub, case_id=session_id, of=TURN + b"%d" % number)

    def open_turn(self, session_id: UUID, number: int, payload: bytes) -> dict[str, Any]:
        """Returns the message of a turn.

        Raises:
            SealBroken: it belongs to another place, session, user or key, or was changed.
        """
        of = TURN + b"%d" % number
        message: dict[str, Any] = unseal(payload, self.key.key, user_sub=self.user_sub, case_id=session_id, of=of)
        return message

    def seal_summary(self, session_id: UUID, last: int, lines: Sequence[Mapping[str, object]]) -> bytes:
        """Returns what a model tells of a session's turns up to that number, sealed for that place."""
        of = SESSION_SUMMARY + b"%d" % last
        return seal([dict(line) for line in lines], self.key.key, user_sub=self.user_sub, case_id=session_id, of=of)

    def open_summary(self, session_id: UUID, last: int, payload: bytes) -> list[dict[str, Any]]:
        """Returns what a model tells of a session's turns up to that number, line by line.

        Raises:
            SealBroken: it belongs to another place, session, user or key, or was changed.
        """
        of = SESSION_SUMMARY + b"%d" % last
        lines: list[dict[str, Any]] = unseal(payload, self.key.key, user_sub=self.user_sub, case_id=session_id, of=of)
        return lines

    def seal_fact(self, fact_id: UUID, words: Mapping[str, str]) -> bytes:
        """Returns what a fact says, sealed, whatever the setting."""
        return seal(dict(words), self.key.key, user_sub=self.user_sub, case_id=fact_id, of=FACT)

    def open_fact(self, fact_id: UUID, words: bytes) -> dict[str, str]:
        """Returns what a fact says: text, subject, attribute, value, unit.

        Raises:
            SealBroken: the words belong to another fact, user or key, or were changed.
        """
        said: dict[str, str] = unseal(words, self.key.key, user_sub=self.user_sub, case_id=fact_id, of=FACT)
        return said

    def hash_of_fact(self, *parts: str) -> bytes:
        """Returns what stands for these words, whatever their case and white space; nobody else can try words out."""
        return self._keyed(b"fact", "\n".join(map(folded, parts)))

    def seal_knowledge(self, entry_id: UUID, title: str, text: str) -> bytes:
        """Returns what an entry of knowledge says, sealed, whatever the setting."""
        said = {"title": title, "text": text}
        return seal(said, self.key.key, user_sub=self.user_sub, case_id=entry_id, of=KNOWLEDGE)

    def open_knowledge(self, entry_id: UUID, words: bytes) -> dict[str, str]:
        """Returns what an entry of knowledge says: title, text.

        Raises:
            SealBroken: the words belong to another entry, user or key, or were changed.
        """
        said: dict[str, str] = unseal(words, self.key.key, user_sub=self.user_sub, case_id=entry_id, of=KNOWLEDGE)
        return said

    def hash_of_knowledge(self, *parts: str) -> bytes:
        """Returns what stands for these words, whatever their case and white space; nobody else can try words out."""
        return self._keyed(
            b"knowledge", json.dumps([folded(part) for part in parts])
        )  # so that one part never runs into the next

    def hash_of_call(self, request_hash: bytes) -> bytes:
        """Returns what tells a call apart from others under its idempotency key; nobody else can try words out on it."""
        return hmac.digest(self.key.key, b"call" + request_hash, "sha256")

    def token(self, step: str) -> str:
        """Returns what stands for a step of a plan; steps that differ in case and white space alone share one."""
        return self._keyed(b"step", step)[:TOKEN_BYTES].hex()

    def group_of(self, query: str) -> int:
        """Returns a number that equal queries share, whatever their case and white space, and that tells no word."""
        return int.from_bytes(self._keyed(b"query", query)[:_GROUP_BYTES], "big")

    def _keyed(self, purpose: bytes, text: str) -> bytes:
        return hmac.digest(self.key.key, purpose + folded(text).encode("utf-8", "surrogatepass"), "sha256")


@dataclass(frozen=True, slots=True)
class WordSeals:
    """Finds the seals of users' words by the keyring; see `retrieval.sealed.Seals`."""

    keyring: Keyring

    @property
    def seals_words(self) -> bool:
        """Whether what is written from now on has its words sealed."""
        return self.keyring.seals_words

    async def of_user(self, database: Database, connection: FastConnection) -> Words:
        """Returns the seal of the connection's user's words; a new user gets a key."""
        user_sub = connection.user_sub
        key = self.keyring.remembered(user_sub) or await self.keyring.find_fast(connection)
        if key is None:
            async with database.as_user(user_sub, connection.authorised_at) as transaction:
                key = await self.keyring.find_or_make(transaction, user_sub)
        return Words(user_sub, key)

    def forget(self, user_sub: str) -> None:
        """Forgets the key that is remembered, for the database has another one."""
        self.keyring.forget(user_sub)
