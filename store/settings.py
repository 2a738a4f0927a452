"""Settings of one acrouter process, from the environment and a `.env` file.

Every setting is `ACROUTER_<NAME>`; the database and the broker also answer to the customary `DATABASE_URL` and
`REDIS_URL`. An unknown `ACROUTER_` name is an error with a suggestion: a typo in a budget must not go unnoticed.
"""

from pathlib import Path
from typing import Literal
from urllib.parse import urlsplit

from pydantic import AliasChoices, Field, SecretStr, ValidationError, field_validator
from pydantic_settings import BaseSettings, SettingsConfigDict, SettingsError

from store.errors import ConfigurationError
from store.settings_mistakes import explain_unparsed, explain_wrong, read_places
from store.suggest import did_you_mean

PREFIX = "ACROUTER_"
ENV_FILE = ".env"
# Far beyond these no clock, calendar or waiting thread can count any more.
_YEAR_S = 365 * 86_400
_CENTURY_DAYS = 36_500


class Settings(BaseSettings):
    """What the operator of this installation decides. Amounts of money are in USD, times in seconds."""

    model_config = SettingsConfigDict(env_prefix=PREFIX, env_file=ENV_FILE, extra="ignore", frozen=True)

    data_dir: Path = Path(".acrouter")
    """Where the embedded database, mirrors of repositories and generated credentials live."""
    database_url: str = Field("", validation_alias=AliasChoices("ACROUTER_DATABASE_URL", "DATABASE_URL"))
    """SQLAlchemy URL. Empty: SQLite in WAL mode below `data_dir`."""
    redis_url: str = Field("", validation_alias=AliasChoices("ACROUTER_REDIS_URL", "REDIS_URL"))
    """Celery's broker. Empty: embedded, the workers are threads of the web process."""
    models_file: Path = Path("models.yaml")
    """The pool: models with their prices."""

    host: str = "127.0.0.1"
    port: int = Field(8080, ge=0, le=65_535)
    public_url: str = ""
    """Where people reach this server; used for links in comments. Empty: no links."""
    max_body_bytes: int = Field(25 * 1024 * 1024, gt=0)
    """Largest webhook body; GitHub sends up to 25 MB."""

    github_app_id: int | None = None
    github_private_key: SecretStr | None = None
    """PEM text of the App's key. `github_private_key_file` is the other way."""
    github_private_key_file: Path | None = None
    github_webhook_secret: SecretStr | None = None
    github_webhook_secret_file: Path | None = None
    github_api_url: str = "https://api.github.com"
    github_web_url: str = "https://github.com"
    github_read_pause_s: float = Field(0.0, ge=0, le=_YEAR_S, allow_inf_nan=False)
    """Pause between two reads of one client. PyGithub's own default is 0.25."""
    github_write_pause_s: float = Field(1.0, ge=0, le=_YEAR_S, allow_inf_nan=False)
    """Pause between two writes, as GitHub's best practices ask for."""
    trigger_label: str = "acrouter"
    onboarding: Literal["required", "off"] = "required"
    """`required`: a repository without `.acrouter.yml` gets a PR that proposes one, and no work starts there before it
    is merged. `off`: work starts without one."""
    sweep_every_s: float = Field(300, gt=0, le=_YEAR_S, allow_inf_nan=False)
    """How often GitHub is asked for webhooks that did not arrive."""

    github_client_id: str = ""
    """Of the App, for sign-in to the dashboard. Empty: only the one-time link that `acrouter up` prints."""
    github_client_secret: SecretStr | None = None
    github_client_secret_file: Path | None = None
    dashboard_allowed: str = ""
    """Who may look: organisations (`octo`), teams (`octo/core`) and people (`@ada`), with commas between."""
    dashboard_operators: str = ""
    """Who of them may retry what failed. Written as `dashboard_allowed`."""
    dashboard_admins: str = ""
    """Who of them may change caps and see the audit log. Written as `dashboard_allowed`."""
    dashboard_session_hours: float = Field(12.0, gt=0, le=_YEAR_S / 3600, allow_inf_nan=False)
    dashboard_secret: SecretStr | None = None
    """Signs the dashboard's cookies. Unset: a random one in `data_dir`; several web processes need one value."""
    dashboard_secret_file: Path | None = None
    digest_issue: str = ""
    """Where a digest of each week is written: `OWNER/NAME#NUMBER` for a comment on that issue, `OWNER/NAME` for a new
    issue each week. Empty: none."""
    trace_endpoint: str = ""
    """OTLP over HTTP, e.g. `http://localhost:4318/v1/traces` (extra `otel`). Empty: no traces."""

    encoder: str = "hashing"
    """`hashing` (built in, lexical), `minilm` (extra `embeddings`), `sentence-transformers:NAME_OR_PATH`, or
    `api:LITELLM_MODEL`."""
    memory_capacity: int = Field(20_000, gt=0)
    """Entries kept in the memory, those of the newest attempts."""
    reward_score_weight: float = Field(1.0, gt=0, allow_inf_nan=False)
    reward_usd_weight: float = Field(0.1, ge=0, allow_inf_nan=False)
    voter_weights: dict[str, float] = Field(
        {"dimension_best": 1.0, "memory_knn": 1.5, "bandit": 1.0}, examples=[{"bandit": 2}]
    )

    policy_url: str = ""
    """OpenAI-compatible URL of the policy voter's server, e.g. `http://127.0.0.1:8000/v1`. Empty: no such voter."""
    policy_model: str = ""
    """The name under which that server serves the policy model or its adapter."""
    policy_api_key: SecretStr | None = None
    policy_deadline_s: float = Field(1.5, gt=0, le=60, allow_inf_nan=False)
    """The policy voter abstains when its model takes longer."""
    logreg_file: Path | None = None
    """The `logreg` voter's model, made by `acrouter train logreg`. Empty: no such voter."""

    judge_model: str = ""
    """A model of the pool that says how likely a maintainer would merge a patch: one small signal of the verifier's
    score, paid from the task's budget. It judges no patch of its own. Empty: none."""

    task_budget_usd: float = Field(2.0, gt=0, allow_inf_nan=False)
    day_budget_usd: float = Field(50.0, gt=0, allow_inf_nan=False)
    month_budget_usd: float = Field(500.0, gt=0, allow_inf_nan=False)
    organisation_day_budget_usd: float | None = Field(None, gt=0, allow_inf_nan=False)
    """Of each organisation or account that installed the App. Empty: no cap of its own."""
    organisation_month_budget_usd: float | None = Field(None, gt=0, allow_inf_nan=False)
    repository_day_budget_usd: float | None = Field(None, gt=0, allow_inf_nan=False)
    """Of each repository. Its own `.acrouter.yml` can only lower it."""
    repository_month_budget_usd: float | None = Field(None, gt=0, allow_inf_nan=False)
    person_day_budget_usd: float | None = Field(None, gt=0, allow_inf_nan=False)
    """Of the tasks that one person starts, in all repositories together."""
    max_attempts: int = Field(3, ge=1, le=20)
    """Attempts of one task, the first and its escalations."""
    max_tasks_per_target: int = Field(5, ge=1)
    """Circuit breaker: tasks started on one issue or PR within 24 hours."""
    step_limit: int = Field(40, ge=1)
    attempt_timeout_s: float = Field(1800, gt=0, le=_YEAR_S, allow_inf_nan=False)
    command_timeout_s: float = Field(60, gt=0, le=_YEAR_S, allow_inf_nan=False)
    test_timeout_s: float = Field(600, gt=0, le=_YEAR_S, allow_inf_nan=False)
    setup_timeout_s: float = Field(600, gt=0, le=_YEAR_S, allow_inf_nan=False)
    model_timeout_s: float = Field(120, gt=0, le=_YEAR_S, allow_inf_nan=False)

    sandbox: Literal["auto", "docker", "bubblewrap"] = "auto"
    sandbox_image: str = "acrouter/base:1"
    sandbox_packages: str = ""
    """Debian packages that the base image gets besides its own, e.g. `nodejs npm` or `golang-go` (Docker only);
    spaces or commas between."""
    sandbox_images: str = ""
    """Images that `.acrouter.yml` may name for the sandbox and for services, as patterns with spaces or commas
    between, e.g. `postgres:* redis:7 ghcr.io/acme/*` (Docker only). They are pulled. Empty: none."""
    sandbox_runtime: str = ""
    """Docker's runtime for sandboxes, such as gVisor's `runsc`. Empty: the daemon's default."""
    sandbox_memory_mb: int = Field(2048, ge=64)
    sandbox_cpus: float = Field(1.0, gt=0, allow_inf_nan=False)
    sandbox_pids: int = Field(512, ge=16)
    sandbox_disk_mb: int = Field(2048, ge=16)
    service_memory_mb: int = Field(2048, ge=64)
    """Memory of each service beside a sandbox; half of it may be what the service writes."""
    service_cpus: float = Field(1.0, gt=0, allow_inf_nan=False)
    max_services: int = Field(5, ge=0, le=5)
    """Services beside one sandbox. A repository that asks for more gets none, and nothing is verified there."""

    cache_gb: float = Field(20, gt=0, allow_inf_nan=False)
    """Disk that images of set-ups may take, and mirrors of repositories as much again; the longest unused go first. A
    repository whose history takes more at once is refused."""
    cache_days: float = Field(14, gt=0, le=_CENTURY_DAYS, allow_inf_nan=False)
    """Images of set-ups and mirrors that were not used for so long are removed."""

    delivery_days: float = Field(30, ge=4, le=_CENTURY_DAYS, allow_inf_nan=False)
    """Webhooks that were handled are kept for so long. GitHub may send one again for three days."""

    concurrency: int = Field(2, ge=1)
    """Tasks that one process works on at once."""
    lease_s: float = Field(60, gt=0, le=_YEAR_S, allow_inf_nan=False)
    """A worker that has not renewed its lease for this long has lost its task."""
    reconcile_every_s: float = Field(15, gt=0, le=_YEAR_S, allow_inf_nan=False)

    scrub_high_entropy: bool = False
    """Take long random-looking words (40 characters and more) out of every text that leaves, besides known formats. It
    takes some hashes too; commits' SHAs stay."""
    log_json: bool = False
    log_level: Literal["debug", "info", "warning", "error"] = "info"

    @field_validator(
        *("github_private_key_file", "github_webhook_secret_file", "github_app_id"),
        *("github_client_secret_file", "dashboard_secret_file", "logreg_file"),
        *("organisation_day_budget_usd", "organisation_month_budget_usd", "person_day_budget_usd"),
        *("repository_day_budget_usd", "repository_month_budget_usd"),
        mode="before",
    )
    @classmethod
    def _empty_is_unset(cls, value: object) -> object:
        return None if value == "" else value

    @field_validator("redis_url")
    @classmethod
    def _redis_only(cls, value: str) -> str:
        # Celery takes what it does not know for the name of an AMQP host, and waits for it for ever.
        if value and not value.startswith(("redis://", "rediss://")):
            raise ValueError("must be redis://HOST:PORT/NUMBER or rediss://...")
        return value

    @field_validator("public_url", "trace_endpoint", "policy_url")
    @classmethod
    def _an_address(cls, value: str) -> str:
        # Without a scheme links lead nowhere, cookies may travel in the clear, and each call to such a place fails.
        if value and (urlsplit(value).scheme not in ("http", "https") or not urlsplit(value).hostname):
            raise ValueError("is no address. Write https://HOST or http://HOST:PORT, or leave it out.")
        return value

    @field_validator("trigger_label")
    @classmethod
    def _a_label(cls, value: str) -> str:
        # GitHub has no label without a name, nor one of more than 50 characters: no issue could ever bear it.
        if not 0 < len(value.strip()) <= 50:
            raise ValueError("is no label's name. Write 1 to 50 characters, or leave it out for 'acrouter'.")
        return value.strip()

    @field_validator("sandbox_images", "sandbox_packages")
    @classmethod
    def _words(cls, value: str) -> str:
        # Lists of people have commas, and neither an image nor a package has one in its name.
        return " ".join(value.replace(",", " ").split())

    @property
    def cache_bytes(self) -> int:
        """`cache_gb` in bytes."""
        return int(self.cache_gb * 1e9)

    @property
    def resolved_database_url(self) -> str:
        """`database_url`, or the embedded default."""
        if self.database_url:
            # Heroku-style URLs name the server; SQLAlchemy wants the driver too.
            for plain in ("postgres://", "postgresql://"):
                if self.database_url.startswith(plain):
                    return "postgresql+psycopg://" + self.database_url.removeprefix(plain)
            return self.database_url
        return f"sqlite:///{(self.data_dir / 'acrouter.sqlite3').absolute()}"

    @property
    def embedded(self) -> bool:
        """True when no broker is configured and the web process works by itself."""
        return not self.redis_url

    def secret(
        self,
        name: Literal["github_private_key", "github_webhook_secret", "github_client_secret", "dashboard_secret"],
    ) -> str | None:
        """Return a secret from its value or its file, or None where neither is set.

        Raises:
            ConfigurationError: the file cannot be read.
        """
        value: SecretStr | None = getattr(self, name)
        if value is not None and value.get_secret_value():
            return value.get_secret_value()
        path: Path | None = getattr(self, f"{name}_file")
        if path is None:
            return None
        try:
            return path.read_text(encoding="utf-8").strip()
        except OSError as error:
            raise ConfigurationError(f"{PREFIX}{name.upper()}_FILE: cannot read {path}: {error.strerror}.") from error
        except UnicodeDecodeError as error:
            raise ConfigurationError(f"{PREFIX}{name.upper()}_FILE: {path} is not a text file.") from error


def load_settings(**overrides: object) -> Settings:
    """Return the settings of this process.

    Raises:
        ConfigurationError: a value is wrong or a name is unknown; each mistake is one line.
    """
    known = {PREFIX + name.upper() for name in Settings.model_fields}
    places = read_places(ENV_FILE, PREFIX)
    # What only a benchmark reads, e.g. the database that it may fill, is no setting of the product.
    present = {name for name in places.names() if not name.startswith(f"{PREFIX}BENCH_")}
    unknown = sorted(name for name in present if name.startswith(PREFIX) and name not in known)
    if unknown:
        raise ConfigurationError(
            "\n".join(f"{places.of(name)}: unknown setting '{name}'.{did_you_mean(name, known)}" for name in unknown)
        )
    try:
        return Settings(**overrides)  # type: ignore[arg-type]
    except ValidationError as error:
        raise ConfigurationError(explain_wrong(error, places, Settings)) from error
    except SettingsError as error:
        raise ConfigurationError(explain_unparsed(error, places, Settings)) from error
