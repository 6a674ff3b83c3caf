"""Users' keys: one each, made once, remembered only as long as the database has it."""

import os
from datetime import UTC, datetime

import pytest

from tests.writer.conftest import Bank
from writer.privacy.keys import Keyring
from writer.privacy.master_keys import MasterKeyMismatch
from writer.rights.erase import erase


async def test_a_user_has_one_key_whoever_asks_first(bank: Bank, user: str):
    other = Keyring(bank.keyring.master)
    async with bank.database.as_user(user, datetime.now(UTC)) as connection:
        assert await bank.keyring.find(connection, user) is None
        made = await bank.keyring.find_or_make(connection, user)
        assert await other.find_or_make(connection, user) == made
    assert bank.keyring.remembered(user) == made


async def test_a_key_that_an_erasure_destroyed_is_forgotten_when_it_is_looked_for(bank: Bank, user: str):
    async with bank.database.as_user(user, datetime.now(UTC)) as connection:
        await bank.keyring.find_or_make(connection, user)
    await erase(bank.database, user)
    assert bank.keyring.remembered(user) is not None
    async with bank.database.as_user(user, datetime.now(UTC)) as connection:
        assert await bank.keyring.find(connection, user) is None
    assert bank.keyring.remembered(user) is None


async def test_a_key_of_another_master_does_not_open(bank: Bank, user: str):
    async with bank.database.as_user(user, datetime.now(UTC)) as connection:
        await bank.keyring.find_or_make(connection, user)
        with pytest.raises(MasterKeyMismatch):
            await Keyring(os.urandom(32)).find(connection, user)
