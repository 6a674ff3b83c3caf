"""How often a stranger may try to sign in: nobody guesses a token, and nobody is to keep the process busy trying."""

from dataclasses import dataclass, field

from cachetools import TTLCache

MOST = 10
WINDOW_S = 60
_ADDRESSES = 10_000


@dataclass(frozen=True, slots=True)
class Attempts:
    """Counts by address, in this process, the attempts that failed lately."""

    most: int = MOST
    _failed: TTLCache[str, int] = field(default_factory=lambda: TTLCache(_ADDRESSES, WINDOW_S))

    def are_used_up(self, address: str) -> bool:
        """Returns whether so many failed from there that the next one has to wait until there was a minute's rest."""
        return self._failed.get(address, 0) >= self.most

    def failed(self, address: str) -> None:
        """Counts one more."""
        self._failed[address] = self._failed.get(address, 0) + 1
