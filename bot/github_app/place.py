"""Where GitHub is: github.com, or an Enterprise Server or Enterprise Cloud with data residency of one's own."""

from dataclasses import dataclass
from urllib.parse import quote, urlsplit

from bot.github_app.errors import GitHubAppError

_CLOUD = "https://github.com"


@dataclass(frozen=True)
class Place:
    web_url: str
    """For people, without a slash at its end."""
    api_url: str

    @classmethod
    def of(cls, web_url: str, api_url: str = "") -> "Place":
        """Return the place of a GitHub by its web address.

        https://docs.github.com/en/enterprise-server@latest/rest/quickstart says where its API is.

        Raises:
            GitHubAppError: the address is not one.
        """
        web = web_url.rstrip("/")
        parts = urlsplit(web)
        if parts.scheme not in ("http", "https") or not parts.hostname:
            raise GitHubAppError(f"'{web_url}' is no address of a GitHub. Give one as in {_CLOUD}.")
        if not api_url:
            if web == _CLOUD:
                api_url = "https://api.github.com"
            elif parts.hostname.endswith(".ghe.com"):
                api_url = f"{parts.scheme}://api.{parts.netloc}"
            else:
                api_url = f"{web}/api/v3"
        return cls(web, api_url.rstrip("/"))

    def new_app_url(self, organisation: str, state: str) -> str:
        """Return where a manifest is posted to."""
        owner = f"/organizations/{quote(organisation, safe='')}" if organisation else ""
        return f"{self.web_url}{owner}/settings/apps/new?state={quote(state, safe='')}"
