"""What a set-up needs of the host to reach package indexes: pip's index settings, proxies, certificates.

They are given to set-up commands by environment, never written into an image. A set-up runs the repository's own code,
which can read them while it runs; a token in an index URL should therefore be a read-only one.
"""

import configparser
import os
import sys
from collections.abc import Mapping
from pathlib import Path

CERTIFICATES = "/tmp/acrouter-certificates.pem"  # noqa: S108  (inside the sandbox, on its own tmpfs)
_PIP_KEYS = {
    "index-url",
    "extra-index-url",
    "trusted-host",
    "proxy",
    "timeout",
    "default-timeout",
    "retries",
    "find-links",
    "no-index",
}
_PROXIES = ("http_proxy", "https_proxy", "no_proxy", "all_proxy")
_CERTIFICATE_VARIABLES = (
    "PIP_CERT",
    "SSL_CERT_FILE",
    "REQUESTS_CA_BUNDLE",
    "CURL_CA_BUNDLE",
    "GIT_SSL_CAINFO",
    "NODE_EXTRA_CA_CERTS",
    "CARGO_HTTP_CAINFO",
)
_SYSTEM_BUNDLES = ("/etc/ssl/certs/ca-certificates.crt", "/etc/pki/tls/certs/ca-bundle.crt", "/etc/ssl/cert.pem")


def setup_environment(certificates: bool, environ: Mapping[str, str] = os.environ) -> dict[str, str]:
    """Return the variables for set-up commands; `certificates`: the host's bundle lies at CERTIFICATES.

    pip's own order holds: global, user and environment's files, then PIP_CONFIG_FILE, then variables
    (https://pip.pypa.io/en/stable/topics/configuration/). Locations that are paths of the host are left out.
    """
    settings: dict[str, str] = {}
    for path in _pip_files(environ):
        settings |= _read_pip_file(path)
    for name, value in environ.items():
        key = name.removeprefix("PIP_").lower().replace("_", "-")
        if name.startswith("PIP_") and key in _PIP_KEYS:
            settings[key] = value
    result = {}
    for key, value in settings.items():
        kept = _without_host_paths(key, value)
        if kept:
            result["PIP_" + key.upper().replace("-", "_")] = kept
    for name in _PROXIES:
        for variant in (name, name.upper()):
            if environ.get(variant):
                result[variant] = environ[variant]
    if certificates:
        result |= dict.fromkeys(_CERTIFICATE_VARIABLES, CERTIFICATES)
    result.setdefault("PIP_RETRIES", "3")
    result["PIP_NO_CACHE_DIR"] = "1"  # it would fill the small home and be thrown away
    return result


def certificate_bundle(environ: Mapping[str, str] = os.environ) -> bytes | None:
    """Return the host's bundle of certificate authorities in PEM, which may know a proxy's or a mirror's own."""
    for candidate in (*(environ.get(name) for name in _CERTIFICATE_VARIABLES), *_SYSTEM_BUNDLES):
        if candidate and Path(candidate).is_file():
            return Path(candidate).read_bytes()
    return None


def _pip_files(environ: Mapping[str, str]) -> list[Path]:
    named = environ.get("PIP_CONFIG_FILE", "")
    if named == os.devnull:
        return []
    home = Path(environ.get("HOME") or "/nonexistent")
    folders = environ.get("XDG_CONFIG_DIRS") or "/etc/xdg"
    files = [Path(folder) / "pip" / "pip.conf" for folder in reversed(folders.split(":"))]
    files += [Path("/etc/pip.conf"), home / ".pip" / "pip.conf"]
    files.append(Path(environ.get("XDG_CONFIG_HOME") or home / ".config") / "pip" / "pip.conf")
    files.append(Path(sys.prefix) / "pip.conf")
    if named:
        files.append(Path(named))
    return files


def _read_pip_file(path: Path) -> dict[str, str]:
    parser = configparser.RawConfigParser()
    try:
        parser.read(path, encoding="utf-8")
    except (configparser.Error, OSError, UnicodeDecodeError):
        return {}  # pip itself will complain to whoever uses it on this host
    return {
        key: value
        for section in ("global", "install")
        if parser.has_section(section)
        for key, value in parser.items(section)
        if key in _PIP_KEYS
    }


def _without_host_paths(key: str, value: str) -> str:
    if key not in {"index-url", "extra-index-url", "find-links"}:
        return value.strip()
    return " ".join(word for word in value.split() if word.startswith(("http://", "https://")))
