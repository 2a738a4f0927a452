"""Every text that a person or a model reads, as Jinja2 templates. This package imports no room, and any may use it.

Texts for people (`comments/`, `pulls/`, `checks/`) are Markdown; what comes from outside goes through the filters of
`templates.escape`. Prompts (`prompts/`) carry the task as quoted data.
"""

from functools import cache
from pathlib import Path

from jinja2 import Environment, FileSystemLoader, StrictUndefined

from templates import escape

_HERE = Path(__file__).resolve().parent


@cache
def _environment() -> Environment:
    environment = Environment(
        loader=FileSystemLoader(_HERE),
        undefined=StrictUndefined,  # a forgotten value is an error, not a blank in somebody's issue
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=False,
        autoescape=False,  # noqa: S701  (Markdown and prompts; HTML pages have their own environment)
    )
    environment.filters |= escape.FILTERS
    return environment


def render(template: str, /, **values: object) -> str:
    """Return the text of `template` (a path below this folder) filled with `values`.

    Raises:
        jinja2.UndefinedError: a value that the template uses is missing.
        jinja2.TemplateNotFound: there is no such template.
    """
    return _environment().get_template(template).render(**values).strip() + "\n"


def source(template: str) -> str:
    """Return a template's own text, for libraries that render it themselves (mini-swe-agent)."""
    return (_HERE / template).read_text(encoding="utf-8")
