"""`acrouter train logreg` and `acrouter train policy`: make the files of the voters that are trained offline."""

from pathlib import Path
from typing import TYPE_CHECKING

import typer
from rich.console import Console
from rich.markup import escape
from rich.table import Table

from store.errors import ConfigurationError
from store.settings import Settings, load_settings
from store.suggest import did_you_mean

if TYPE_CHECKING:
    from routing.logreg_file import HeldOut
    from routing.training.examples import Example

app = typer.Typer(help="Train the voters that are models, from a profile or the own history.", no_args_is_help=True)

_PROFILE = typer.Option(None, help="JSON lines: task, text, model, score, cost_usd. Without it: the own history.")


@app.command()
def logreg(
    out: Path = typer.Option(..., help="The file to write; name it with ACROUTER_LOGREG_FILE."),
    profile: Path | None = _PROFILE,
) -> None:
    """Train the logreg voter and report how it does on tasks that it has not seen."""
    from routing.encoders import make_encoder
    from routing.logreg_file import save
    from routing.training.logreg import train

    settings = load_settings()
    _check_folder(out)
    examples = _examples(settings, profile, None)
    model = train(examples, make_encoder(settings.encoder))
    save(model, out)
    console = Console(stderr=True)
    console.print(_report(model.held_out))
    if model.held_out.skill <= 0:
        console.print(
            "[yellow]It is no better than the majority, so the voter will abstain. Train it on more tasks.[/]"
        )
    console.print(f"{len(model.models)} models in {escape(str(out))}, for the encoder {escape(model.encoder)}.")


@app.command()
def policy(
    base: str = typer.Option(..., help="The model to adapt: a folder, or a name on the Hugging Face hub."),
    out: Path = typer.Option(..., help="The folder to write the adapter into; vLLM serves it with --lora-modules."),
    profile: Path | None = _PROFILE,
    steps: int = typer.Option(200, min=1),
    batch: int = typer.Option(8, min=1, help="Tasks of one step."),
    learning_rate: float = typer.Option(5e-4, min=1e-6, max=1.0),
) -> None:
    """Train a LoRA adapter for the policy voter's model."""
    from routing.encoders import make_encoder
    from routing.pool import load_pool
    from routing.reward import RewardWeights
    from routing.training.lora import LoraOptions, train_adapter
    from routing.training.policy import lessons

    settings = load_settings()
    pool = load_pool(settings.models_file)
    names = [spec.name for spec in pool.models]
    taught = lessons(
        _examples(settings, profile, names),
        pool,
        make_encoder(settings.encoder),
        RewardWeights(settings.reward_score_weight, settings.reward_usd_weight),
    )
    console = Console(stderr=True)
    console.print(f"{len(taught)} tasks to learn from.")
    options = LoraOptions(steps=steps, batch=batch, learning_rate=learning_rate)
    with console.status("training") as status:
        loss = train_adapter(
            taught, base, out, options, progress=lambda n, loss: status.update(f"step {n} of {steps}: loss {loss:.3f}")
        )
    console.print(f"Loss of the answers at the end: {loss:.3f}. Adapter: {escape(str(out))}.")


def _examples(settings: Settings, profile: Path | None, names: list[str] | None) -> "list[Example]":
    """Of the own history models may be missing from the pool, they left it; a profile's are held against it."""
    from routing.pool import load_pool
    from routing.training.examples import read_history, read_profile

    if profile is None:
        from bot.assembly import open_database

        pool = load_pool(settings.models_file) if settings.models_file.exists() else None
        return read_history(open_database(settings), pool)
    examples = read_profile(profile)
    for example in examples:
        for model in example.results:
            if names is not None and model not in names:
                raise ConfigurationError(
                    f"{profile}: task '{example.key}': the model '{model}' is not in {settings.models_file}."
                    f"{did_you_mean(model, names)}"
                )
    return examples


def _check_folder(out: Path) -> None:
    if not out.parent.is_dir() or out.is_dir():
        raise ConfigurationError(f"--out: {out} cannot be written: give a file's name in a folder that exists.")


def _report(held_out: "HeldOut") -> Table:
    table = Table("", "accuracy", "Brier score", title=f"On {held_out.attempts} attempts at held-out tasks")
    table.add_row("logreg", f"{held_out.accuracy:.3f}", f"{held_out.brier:.4f}")
    table.add_row("majority", f"{held_out.majority_accuracy:.3f}", f"{held_out.majority_brier:.4f}")
    return table
