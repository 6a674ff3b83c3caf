"""Errors of bearer tokens.

    CasebankError
    ├── NotAuthenticated   the header or the token in it is missing, malformed, expired or not meant for us
    ├── NotAllowed         the token is valid, but does not let its bearer act for that user
    ├── UserNotNamed       the token lets its bearer act for users, and the request names no user
    └── KeysUnavailable    the issuer's public keys cannot be fetched; a later try may succeed

No message holds any part of the token, so all of them can be shown to the caller.
"""

from retrieval.errors import CasebankError


class NotAuthenticated(CasebankError):
    """The caller is not identified."""


class NotAllowed(CasebankError):
    """The caller is identified, but may not act for the user of the request."""


class UserNotNamed(CasebankError):
    """The caller may act for users and names none; their memories must not end in one pool, the caller's own."""


class KeysUnavailable(CasebankError):
    """The issuer's keys cannot be fetched, and the token names a key not seen before."""
