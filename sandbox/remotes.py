"""Where a repository lives, and who commits."""

from dataclasses import dataclass, field


@dataclass(frozen=True)
class GitRemote:
    """Where to fetch from or push to. The token goes to git by its environment, and to the LFS server of the same
    address as basic authentication: never into a URL or an argument."""

    url: str
    username: str = "x-access-token"
    token: str | None = field(default=None, repr=False)


@dataclass(frozen=True)
class Author:
    name: str
    email: str
