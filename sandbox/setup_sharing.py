"""Whose code may use what a set-up left.

A set-up runs the repository's own code (a setup.py, a build backend, npm's scripts, a Makefile), and that code may
leave anything in the environment, for whoever uses it next. Which files it ran nobody knows. So an environment is for
those alone who trust each other already: each function here gives the name of one such circle.
"""


def of_default_branch(repository: str) -> str:
    """Name the commits of a repository's default branch: its writers put each of them there.

    `repository` is an identity that nobody else can come by, as a name that was given up can be.
    """
    return f"default branch of {repository}"


def of_tree(repository: str, tree: str) -> str:
    """Name one tree alone: another one's set-up cannot have run in its place, whoever wrote it.

    That is what a fork's commit needs, and every branch: a model that a stranger's words have led astray may have
    written to it.
    """
    return f"tree {tree} of {repository}"
