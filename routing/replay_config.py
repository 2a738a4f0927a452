"""The configuration that a replay judges."""

from pathlib import Path

import yaml
from pydantic import BaseModel, ConfigDict, Field, ValidationError

from routing.voters import FACTORIES, OPTIONAL
from store.errors import ConfigurationError
from store.settings import Settings
from store.suggest import did_you_mean, explain, unreadable


class ReplayConfig(BaseModel):
    """What may be asked of the logged decisions. What is not given is as the settings say."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    voter_weights: dict[str, float] | None = None
    encoder: str | None = None
    memory_capacity: int | None = Field(None, gt=0)
    max_attempts: int | None = Field(None, ge=1, le=20)
    reward_score_weight: float | None = Field(None, gt=0)
    """Of what the other configuration maximises; both are judged by the settings' reward."""
    reward_usd_weight: float | None = Field(None, ge=0)
    exploration: bool = True
    """False: the other configuration draws nothing."""
    deny: list[str] = []
    """Models that it would not have chosen."""

    def settings(self, settings: Settings) -> Settings:
        """Return the settings with what is given here in their place."""
        given = self.model_dump(exclude={"exploration", "deny"}, exclude_none=True)
        return settings.model_copy(update=given)


def load_config(path: Path) -> ReplayConfig:
    """Return the configuration of a YAML file.

    Raises:
        ConfigurationError: it cannot be read, a key or a voter is unknown, or a value is wrong.
    """
    try:
        data = yaml.safe_load(path.read_text(encoding="utf-8"))
        config = ReplayConfig.model_validate({} if data is None else data)
    except (OSError, UnicodeDecodeError) as error:
        raise ConfigurationError(f"--config: {path} cannot be read: {unreadable(error)}.") from error
    except (yaml.YAMLError, RecursionError) as error:
        raise ConfigurationError(f"--config: {path}: not valid YAML: {str(error).splitlines()[0]}.") from error
    except ValidationError as error:
        raise ConfigurationError(explain(error, f"--config: {path}", ReplayConfig)) from error
    known = [*FACTORIES, *OPTIONAL]
    for name in config.voter_weights or ():
        if name not in known:
            raise ConfigurationError(
                f"--config: {path}: voter_weights: unknown voter '{name}'.{did_you_mean(name, known)}"
            )
    return config
