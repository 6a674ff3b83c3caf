"""Errors of bearer tokens; no message holds any part of a token, so all can be shown to the caller."""

from retrieval.errors import CasebankError


class NotAuthenticated(CasebankError):
    """The header or the token in it is missing, malformed, expired, revoked or not meant for us."""


class NotAllowed(CasebankError):
    """The token is valid, but does not let its bearer act for the user of the request, or see what it asks for."""


class UserNotNamed(CasebankError):
    """The caller may act for users and names none; their memories must not end in one pool, the caller's own."""


class KeysUnavailable(CasebankError):
    """The issuer's keys cannot be fetched, and the token names a key not seen before; a later try may succeed."""
