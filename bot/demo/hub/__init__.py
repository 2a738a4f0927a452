"""acrouter's local GitHub: the part of GitHub that acrouter uses, in memory, with git over HTTP.

`acrouter demo` runs against it on a machine that has only Python and git. It is no GitHub: every page says so.
"""

NAME = "acrouter's local GitHub (demo)"
