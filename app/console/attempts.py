"""A limit on failed sign-ins by address, against guessing and against load."""

from dataclasses import dataclass, field

from cachetools import TTLCache

MOST = 10
WINDOW_S = 60
_ADDRESSES = 10_000


@dataclass(frozen=True, slots=True)
class Attempts:
    """Counters of recently failed attempts, by address, in this process."""

    most: int = MOST
    _failed: TTLCache[str, int] = field(default_factory=lambda: TTLCache(_ADDRESSES, WINDOW_S))

    def are_used_up(self, address: str) -> bool:
        """Returns whether an address has to wait with its next sign-in: too many failed within the last minute."""
        return self._failed.get(address, 0) >= self.most

    def failed(self, address: str) -> None:
        """Counts a failed attempt of the address."""
        self._failed[address] = self._failed.get(address, 0) + 1
