"""The dashboard's own secret: signs cookies, seals tokens, makes the words that forms carry."""

import base64
import hashlib
import hmac
import os
import secrets
from contextlib import suppress
from pathlib import Path
from typing import Any

from cryptography.fernet import Fernet, InvalidToken
from itsdangerous import BadSignature, URLSafeTimedSerializer

from store.errors import ConfigurationError
from store.scrub import register_secret
from store.settings import Settings

_SHORTEST = 32


class Signer:
    """Everything that needs the secret."""

    def __init__(self, secret: str) -> None:
        self._secret = secret.encode()
        sealing = hmac.digest(self._secret, b"acrouter token sealing", "sha256")
        self._fernet = Fernet(base64.urlsafe_b64encode(sealing))

    def sign(self, value: Any, purpose: str) -> str:
        """Return JSON that a browser may hold and not change."""
        return self._serializer(purpose).dumps(value)

    def read(self, text: str, purpose: str, max_age_s: float) -> Any | None:
        """Return what was signed for this purpose, or None where it was not, or too long ago."""
        try:
            return self._serializer(purpose).loads(text, max_age=int(max_age_s))
        except BadSignature:
            return None

    def csrf(self, session: str) -> str:
        """Return the word that forms of a session carry."""
        return hmac.new(self._secret, b"csrf:" + session.encode(), "sha256").hexdigest()

    def seal(self, text: str) -> str:
        """Encrypt what lies in the database."""
        return self._fernet.encrypt(text.encode()).decode()

    def unseal(self, sealed: str) -> str | None:
        """Return what was sealed, or None where the secret is another one now."""
        try:
            return self._fernet.decrypt(sealed.encode()).decode()
        except InvalidToken:
            return None

    def _serializer(self, purpose: str) -> URLSafeTimedSerializer:
        return URLSafeTimedSerializer(self._secret, salt=f"acrouter.{purpose}")


def digest(token: str) -> str:
    """Return what is kept of a token: its SHA-256."""
    return hashlib.sha256(token.encode()).hexdigest()


def same(first: str, second: str) -> bool:
    """Compare without telling by time where the difference is."""
    return hmac.compare_digest(first.encode(), second.encode())


def signer_of(settings: Settings) -> Signer:
    """Return the signer with the configured secret, or with one that is kept in `data_dir`.

    Raises:
        ConfigurationError: the secret is too short, or cannot be kept.
    """
    secret = settings.secret("dashboard_secret") or _kept(settings.data_dir / "dashboard-secret")
    if len(secret) < _SHORTEST:
        raise ConfigurationError(
            f"ACROUTER_DASHBOARD_SECRET: must have {_SHORTEST} characters or more. `openssl rand -hex 32` makes one."
        )
    register_secret(secret)
    return Signer(secret)


def _kept(path: Path) -> str:
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        # Whole from its first moment: two processes that start together take the same one.
        draft = path.with_name(f".{path.name}-{os.getpid()}-{secrets.token_hex(4)}")
        if not path.exists():
            draft.touch(mode=0o600)
            draft.write_text(secrets.token_hex(32), encoding="utf-8")
            with suppress(FileExistsError):
                os.link(draft, path)
            draft.unlink()
        return path.read_text(encoding="utf-8").strip()
    except OSError as error:
        raise ConfigurationError(
            f"{path}: the dashboard's secret cannot be kept: {error.strerror}. Set ACROUTER_DASHBOARD_SECRET."
        ) from error
