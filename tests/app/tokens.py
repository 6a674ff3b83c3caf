"""Tokens, good ones and such as nobody should send."""

import base64
import json
from datetime import UTC, datetime, timedelta
from typing import Any

import jwt

from app.auth.keys import SharedSecret
from app.auth.tokens import TokenVerifier

SECRET = "a secret of more than thirty-two bytes"
ISSUER, AUDIENCE = "https://issuer.example", "casebank"
NOW = datetime.now(UTC).replace(microsecond=0)
VERIFIER = TokenVerifier(SharedSecret(SECRET), ISSUER, AUDIENCE)


def claims(**changed: Any) -> dict[str, Any]:
    whole = {"sub": "alice", "iss": ISSUER, "aud": AUDIENCE, "iat": NOW, "exp": NOW + timedelta(hours=5)} | changed
    return {name: value for name, value in whole.items() if value is not None}


def bearer(*, key: Any = SECRET, alg: str = "HS256", kid: str | None = None, **changed: Any) -> str:
    token = jwt.encode(claims(**changed), key, algorithm=alg, headers={"kid": kid} if kid else None)
    return f"Bearer {token}"


def segment(data: Any) -> str:
    raw = data if isinstance(data, bytes) else json.dumps(data).encode()
    return base64.urlsafe_b64encode(raw).decode().rstrip("=")
