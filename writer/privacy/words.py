"""Encrypts the words of rows, the texts of a user that the database need not search, with the user's key.

A setting decides whether new cases and decisions have their words encrypted or plain; each row tells its own form. All
other words are encrypted in any case. Beside encrypted words the rows have keyed hashes, so that equal steps, runs and
queries of one user can be recognised, but words cannot be guessed without the key.
"""

import hmac
import json
import struct
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from hashlib import blake2b
from typing import Any, TypeVar
from uuid import UUID

from retrieval.errors import SealBroken
from retrieval.sealed import UNREADABLE, CaseWords, Part, effects_of
from retrieval.text import as_repeated, folded
from writer.privacy.seal import label_of, seal, unseal, unseal_sized

Row = TypeVar("Row")
Value = TypeVar("Value")

TOKEN_BYTES = 12
"""Bytes of a token, which stands for a step of a plan; two different steps of one user have equal tokens once in about
10^14 pairs of plans."""
_GROUP_BYTES = 7
_NUMBER_BYTES = 8
_SMALL_BYTES = 4


@dataclass(frozen=True, slots=True)
class Words:
    """A user's key, which encrypts and decrypts the words of the user's rows; see `retrieval.sealed.UserSeal`.

    Encrypted bytes are bound to the user, the row and the place in it. The methods that decrypt raise SealBroken for
    bytes of another user, row, place or key.

    Attributes:
        key_id: id of the key, which is stored beside everything that the key encrypts.
    """

    user_sub: str
    key_id: UUID
    key: bytes = field(repr=False)

    @property
    def of_page(self) -> "WordsOfPage":
        """Returns the same key for the rows of a page."""
        return WordsOfPage(self.user_sub, self.key_id, self.key)

    def seal(self, part: Part, value: object, row_id: UUID, *place: int) -> bytes:
        """Returns a JSON value, packed or not, encrypted and bound to the row and to the place in it.

        The place is the numbers that tell parts of a row apart, such as a turn's number in its session.
        """
        return seal(value, self.key, user_sub=self.user_sub, case_id=row_id, of=label_of(part, place))

    def open(self, part: Part, sealed: bytes, row_id: UUID, *place: int) -> Any:
        """Returns the JSON value that `seal` encrypted for the same part, row and place."""
        return unseal(sealed, self.key, user_sub=self.user_sub, case_id=row_id, of=label_of(part, place))

    def open_payload(self, case_id: UUID, payload: bytes) -> tuple[dict[str, Any], int]:
        """Returns the decrypted payload of a case, and the bytes of its JSON, which may be many times the sealed ones."""
        return unseal_sized(payload, self.key, user_sub=self.user_sub, case_id=case_id)

    def seal_case(self, case_id: UUID, task: str, plan: Sequence[str], effects: Sequence[str]) -> dict[str, object]:
        """Returns the columns of a case with its words encrypted, and with tokens in place of the plan's steps.

        Names of tools among the effects stay readable.
        """
        blob = self.seal("case", {"task": task, "plan": list(plan)}, case_id)
        tokens = {step: self.token(step) for step in plan}
        return {
            "task": "",
            "plan": [tokens[step] for step in plan],
            "effects": [tokens.get(effect, effect) for effect in effects],
            "words": blob,
            "message_hash": self._keyed(b"run", json.dumps([*map(as_repeated, (task, *plan))])),
        }

    def open_case(self, case_id: UUID, words: bytes) -> CaseWords:
        """Returns the decrypted words of a case."""
        texts = self.open("case", words, case_id)
        return CaseWords(texts["task"], texts["plan"])

    def opened(self, row: Mapping[Any, Any]) -> dict[str, Any]:
        """Returns a row of a case with its decrypted words in their columns; a plain row is returned as it is."""
        values: dict[str, Any] = {name: value for name, value in row.items() if name != "words"}
        if row["words"] is None:
            return values
        texts = self.open_case(row["id"], row["words"])
        opened = {"task": texts.task, "plan": texts.plan}
        if "effects" in row:
            opened["effects"] = effects_of(row["effects"], row["plan"], texts)
        return {**values, **opened}

    def seal_query(self, decision_id: UUID, query: str, rewritten: str | None) -> bytes:
        """Returns the query of a decision, encrypted."""
        return self.seal("decision", {"query": query, "rewritten": rewritten}, decision_id)

    def open_query(self, row: Mapping[Any, Any]) -> dict[str, Any]:
        """Returns a row of a decision with its decrypted query in its columns; a plain row is returned as it is."""
        values: dict[str, Any] = {name: value for name, value in row.items() if name != "words"}
        if row["words"] is None:
            return values
        return {**values, **self.open("decision", row["words"], row["id"])}

    def seal_run(self, run_id: UUID, task: str) -> bytes:
        """Returns the task of an unfinished run, encrypted whatever the setting for new rows is."""
        return self.seal("run", {"task": task}, run_id)

    def open_run(self, run_id: UUID, words: bytes) -> str:
        """Returns the decrypted task of an unfinished run; empty if the task was deleted with the run's case."""
        return str(self.open("run", words, run_id)["task"]) if words else ""

    def number_of(self, purpose: str, text: str) -> int:
        """Returns a text's keyed hash of 64 bits, signed; letter case counts.

        Equal texts have different hashes for different purposes.
        """
        keyed = hmac.digest(self.key, f"{purpose}\n{text}".encode("utf-8", "surrogatepass"), "sha256")
        return int.from_bytes(keyed[:_NUMBER_BYTES], "big", signed=True)

    def numbers(self, kind: str, texts: Iterable[str]) -> list[int]:
        """Returns a keyed hash of 32 bits, signed, for each text; letter case counts, and the kind is part of the hash.

        It is fast, because every run needs dozens of hashes: BLAKE2, with a key for each kind, takes 1 µs a text.
        """
        keyed = blake2b(digest_size=_SMALL_BYTES, key=hmac.digest(self.key, b"numbers" + kind.encode(), "sha256"))
        digests = []
        for text in texts:
            of_text = keyed.copy()
            of_text.update(text.encode("utf-8", "surrogatepass"))
            digests.append(of_text.digest())
        return list(struct.unpack(f">{len(digests)}i", b"".join(digests)))

    def hash_of_fact(self, *parts: str) -> bytes:
        """Returns the keyed hash of a fact's parts; letter case and white space do not count."""
        return self._keyed(b"fact", "\n".join(map(folded, parts)))

    def hash_of_knowledge(self, *parts: str) -> bytes:
        """Returns the keyed hash of parts of an entry of knowledge; letter case and white space do not count."""
        # JSON keeps the boundaries of the parts
        return self._keyed(b"knowledge", json.dumps([folded(part) for part in parts]))

    def hash_of_checkpoint(self, purpose: str, *names: str) -> bytes:
        """Returns the keyed hash of names by which a checkpoint is looked up; letter case and white space count."""
        return hmac.digest(self.key, b"checkpoint" + json.dumps([purpose, *names]).encode(), "sha256")

    def hash_of_call(self, request_hash: bytes) -> bytes:
        """Returns the keyed hash of a request's sha256, by which a repeat of the request is recognised."""
        return hmac.digest(self.key, b"call" + request_hash, "sha256")

    def token(self, step: str) -> str:
        """Returns the token of a step of a plan, a keyed hash; letter case and white space do not count."""
        return self._keyed(b"step", step)[:TOKEN_BYTES].hex()

    def group_of(self, query: str) -> int:
        """Returns the keyed hash by which equal queries are grouped; letter case and white space do not count."""
        return int.from_bytes(self._keyed(b"query", query)[:_GROUP_BYTES], "big")

    def _keyed(self, purpose: bytes, text: str) -> bytes:
        return hmac.digest(self.key, purpose + folded(text).encode("utf-8", "surrogatepass"), "sha256")


_UNREADABLE: Mapping[Part, object] = {
    "case": {"task": UNREADABLE, "plan": []},
    "decision": {"query": UNREADABLE, "rewritten": None},
    "fact": {"text": UNREADABLE, "subject": "", "attribute": "", "value": "", "unit": ""},
    "finding": {"fact": UNREADABLE},
    "knowledge": {"title": "", "text": UNREADABLE},
    "run": {"task": UNREADABLE},
    "step": {"tool": "", "output": UNREADABLE},
    "told": UNREADABLE,
    "turn": {"content": UNREADABLE},
}


class WordsOfPage(Words):
    """The words of rows on a page: a row that does not decrypt says so, and does not hide the others."""

    __slots__ = ()

    def open(self, part: Part, sealed: bytes, row_id: UUID, *place: int) -> Any:
        """Returns the JSON value as `Words.open` does; UNREADABLE in its place if it does not decrypt."""
        try:
            return super().open(part, sealed, row_id, *place)
        except SealBroken:
            if part not in _UNREADABLE:
                raise
            return _UNREADABLE[part]


def readable(opened: Callable[[Row], Value], rows: Iterable[Row]) -> Iterator[Value]:
    """Yields each row as ``opened`` returns it, without those of which it raises SealBroken: they hide no other."""
    for row in rows:
        with suppress(SealBroken):
            yield opened(row)
