"""`python -m bot` is `acrouter`."""

from bot.cli import main

main()
