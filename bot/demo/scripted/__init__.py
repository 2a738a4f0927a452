"""Scripted models: they stand in for paid ones where the loop is shown or tested, and say so in every answer.

Each follows a fixed script of commands for the bugs of the catalogue. Nothing about them is intelligent: what they show
is the loop around them.
"""

from bot.demo.scripted.models import SCRIPTED_MODELS, ScriptedModel, write_models_file
from bot.demo.scripted.server import ScriptedEndpoint

__all__ = ["SCRIPTED_MODELS", "ScriptedEndpoint", "ScriptedModel", "write_models_file"]
