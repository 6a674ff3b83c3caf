"""Bearer tokens: who calls, whose memory the caller may touch, and which tokens are revoked."""
