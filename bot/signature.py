"""Webhook signatures: HMAC-SHA256 over the raw body.

https://docs.github.com/en/webhooks/using-webhooks/validating-webhook-deliveries
"""

import hmac

from bot.errors import SignatureError

_SCHEME = "sha256="


def sign(body: bytes, secret: str) -> str:
    """Return the `X-Hub-Signature-256` header of a body."""
    return _SCHEME + hmac.digest(secret.encode(), body, "sha256").hex()


def verify(body: bytes, header: str | None, secret: str) -> None:
    """Check a body against its header, in constant time.

    Raises:
        SignatureError: the header is missing, of another scheme or wrong.
    """
    if not header:
        raise SignatureError("The X-Hub-Signature-256 header is missing. Set a secret for the App's webhook.")
    if not hmac.compare_digest(header.encode("utf-8", "replace"), sign(body, secret).encode()):
        raise SignatureError("The signature does not fit the body. The App's webhook secret and ours must be the same.")
