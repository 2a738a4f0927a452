"""Imports mini-swe-agent and LiteLLM so that neither prints, writes, phones out or reads anybody's `.env`.

Both act while they are imported: mini-swe-agent makes a folder below the user's configuration and loads the `.env` in
it; LiteLLM loads the nearest `.env` in its development mode and fetches a price table. Modules that need either import
this one first; it is slow (seconds), so they are themselves imported only when an agent runs.
"""

import gc
import logging
import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def _environment(**values: str) -> Iterator[None]:
    before = {name: os.environ.get(name) for name in values}
    os.environ.update(values)
    try:
        yield
    finally:
        for name, value in before.items():
            if value is None:
                os.environ.pop(name, None)
            else:
                os.environ[name] = value


@contextmanager
def _without_collections() -> Iterator[None]:
    """Collect no garbage meanwhile, and never look through what is there afterwards.

    The libraries make half a million objects that live as long as the process. Looking through them again and again
    takes a fifth of the import, and later a third of a second for each full collection.
    """
    enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        gc.freeze()
        if enabled:
            gc.enable()


with (
    _without_collections(),
    tempfile.TemporaryDirectory(prefix="acrouter-mini-") as _folder,
    _environment(
        MSWEA_SILENT_STARTUP="1",
        MSWEA_GLOBAL_CONFIG_DIR=_folder,
        LITELLM_MODE="PRODUCTION",
        LITELLM_LOCAL_MODEL_COST_MAP="True",
    ),
):
    import litellm
    import minisweagent
    import minisweagent.agents.default
    import minisweagent.models.litellm_model  # noqa: F401

litellm.suppress_debug_info = True
litellm.drop_params = True
litellm.disable_hf_tokenizer_download = True
litellm.callbacks = []
litellm.success_callback = []
litellm.failure_callback = []

# mini-swe-agent logs whole conversations at DEBUG through a handler of its own on standard output.
logging.getLogger("minisweagent").handlers.clear()
for _name in ("minisweagent", "agent", "litellm_model", "LiteLLM", "LiteLLM Proxy", "LiteLLM Router"):
    logging.getLogger(_name).setLevel(logging.ERROR)
