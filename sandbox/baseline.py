"""The tree before the agent, kept where the agent cannot write, and the patch taken against it.

git runs inside the sandbox only, as the sandbox's root, with a git folder and a configuration of ours. What stands in
the tree (`.git`, `.gitattributes`, hooks, links) is content to it and never configuration: attributes are overridden by
`info/attributes` (gitattributes(5): it has the highest precedence), and filters, text conversion, external diffs, hooks
and monitors are off. Nested repositories that the agent makes are not part of the patch.

Where bubblewrap runs as an ordinary user, "where the agent cannot write" is not true: it is the user that git runs as.
So only objects outlast the agent: the git folder with all that configures git is made anew, and git may fetch nothing.
Objects that it forges give a patch that is inspected and applied on the host like any other.
"""

import base64

from sandbox import ignore_rules, patch_text
from sandbox.errors import PatchError, SandboxError
from sandbox.types import TRUSTED, WORKSPACE, CommandResult, Sandbox

MAX_PATCH_BYTES = 5_000_000
_GIT_DIR = f"{TRUSTED}/baseline.git"
_OBJECTS = f"{TRUSTED}/objects"
_TIMEOUT_S = 120.0
_NO_CONVERSION = "* -text -ident -filter -working-tree-encoding !diff !eol\n"

_GIT_HOME = (
    "env -i PATH=/usr/local/bin:/usr/bin:/bin HOME=/nonexistent LC_ALL=C.UTF-8 "
    "GIT_CONFIG_NOSYSTEM=1 GIT_CONFIG_GLOBAL=/dev/null GIT_ATTR_NOSYSTEM=1 "
    # A missing object is an error: no protocol is spoken for it, whatever any configuration says.
    f"GIT_OBJECT_DIRECTORY={_OBJECTS} GIT_NO_REPLACE_OBJECTS=1 GIT_NO_LAZY_FETCH=1 GIT_ALLOW_PROTOCOL=none"
)
_GIT = " ".join(
    [
        f"{_GIT_HOME} GIT_INDEX_FILE={TRUSTED}/index",
        f"git --git-dir={_GIT_DIR} --work-tree={WORKSPACE}",
        "-c core.fsmonitor=false -c core.hooksPath=/dev/null -c core.excludesFile=/dev/null",
        "-c core.attributesFile=/dev/null -c core.autocrlf=false -c core.safecrlf=false -c core.fileMode=true",
        "-c core.symlinks=true -c core.quotePath=true -c core.untrackedCache=false -c gc.auto=0 -c index.threads=1",
    ]
)


def lay(sandbox: Sandbox) -> None:
    """Record the tree in WORKSPACE as the baseline, and give the agent a repository of its own where there is none.

    Raises:
        SandboxError: git is missing in the sandbox or the tree cannot be read.
    """
    _trusted(
        sandbox,
        f"rm -rf {TRUSTED} && mkdir -m 700 {TRUSTED} && {_new_git_dir()} && "
        f"{_GIT} add -A -f . && {_GIT} write-tree > {TRUSTED}/tree",
        "The tree could not be recorded (is git installed in the sandbox's image?)",
    )
    # The agent's own: never read by us, and nothing depends on it.
    sandbox.execute(
        "[ -e .git ] || { git init -q . && git add -A && "
        "git -c user.name=agent -c user.email=agent@localhost -c commit.gpgSign=false commit -q --no-verify -m base; }",
        timeout_s=_TIMEOUT_S,
    )


def take_patch(sandbox: Sandbox) -> str:
    """Return what the agent changed since `lay`, as a git patch; empty where nothing changed.

    New files that the repository ignores (by its `.gitignore` files at the baseline) and what builds and test runs
    leave behind are no part of it. Files that are not UTF-8 appear as binary changes, so that the text is exact.

    Raises:
        PatchError: the change is too large, or is not one that git can express.
        SandboxError: the sandbox is gone.
    """
    tree = (sandbox.read_file(f"{TRUSTED}/tree") or b"").decode("ascii", "replace").strip()
    if not tree.isalnum():
        raise SandboxError("The baseline is missing.")
    _trusted(sandbox, _new_git_dir(), "The baseline could not be read")
    rules = _exclude_file(sandbox, tree)
    _trusted(
        sandbox,
        f"{_write(f'{TRUSTED}/exclude', rules)} && "
        # An index without stat data: every file is compared by its content, whatever its times say.
        f"rm -f {TRUSTED}/index && {_GIT} read-tree {tree} && "
        f"{_GIT} ls-files -z -d > {TRUSTED}/gone && "
        f"{_GIT} update-index -z --force-remove --stdin < {TRUSTED}/gone && "
        f"{_GIT} ls-files -z -m -o --exclude-from={TRUSTED}/exclude > {TRUSTED}/changed && "
        f"{_GIT} update-index -z --add --remove --replace --stdin < {TRUSTED}/changed",
        "The change could not be read (does the tree hold special files?)",
    )
    patch = _diff(sandbox, tree)
    try:
        return patch.decode()
    except UnicodeDecodeError:
        attributes = (_NO_CONVERSION + _as_binary(patch)).encode()
        _trusted(sandbox, _write(f"{_GIT_DIR}/info/attributes", attributes), "The change could not be written down")
        return _diff(sandbox, tree).decode()


def _diff(sandbox: Sandbox, tree: str) -> bytes:
    _trusted(
        sandbox,
        f"{_GIT} diff-index --cached -p --binary --full-index --no-renames --no-ext-diff --no-textconv --no-color "
        f"--ignore-submodules=none --src-prefix=a/ --dst-prefix=b/ {tree} > {TRUSTED}/patch",
        "The change could not be written down",
    )
    patch = sandbox.read_file(f"{TRUSTED}/patch", limit=MAX_PATCH_BYTES + 1)
    if patch is None:
        raise SandboxError("The patch is missing.")
    if len(patch) > MAX_PATCH_BYTES:
        raise PatchError(f"The patch is larger than {MAX_PATCH_BYTES / 1e6:g} MB.")
    return patch


def _as_binary(patch: bytes) -> str:
    """Return attributes that make git treat those files as binary whose changes are not UTF-8."""
    lines = []
    for section in patch_text.split(patch.decode("utf-8", "surrogateescape")):
        try:
            section.encode()
        except UnicodeEncodeError:
            lines.append(f"{patch_text.quote(_glob_literal(patch_text.header_path(section)))} -diff\n")
    return "".join(lines)


def _glob_literal(path: str) -> str:
    return "/" + "".join("\\" + c if c in "*?[\\" else c for c in path)


def _exclude_file(sandbox: Sandbox, tree: str) -> bytes:
    listing = f"{_GIT} ls-tree -r -z --name-only {tree} | grep -z -E '(^|/)[.]gitignore$' | head -z -n 200 || true"
    script = (
        f"{{ {listing}; }} > {TRUSTED}/ignores; : > {TRUSTED}/rules; "
        f"while IFS= read -r -d '' path; do "
        f'printf "%s\\0" "$path"; {_GIT} cat-file blob {tree}:"$path" | head -c 20000 | tr -d "\\000"; printf "\\0"; '
        f"done < {TRUSTED}/ignores > {TRUSTED}/rules"
    )
    _trusted(sandbox, script, "The repository's .gitignore files could not be read")
    parts = (sandbox.read_file(f"{TRUSTED}/rules") or b"").decode("utf-8", "surrogateescape").split("\0")
    gitignores = dict(zip(parts[0::2], parts[1::2], strict=False))
    return ignore_rules.combine(gitignores).encode("utf-8", "surrogateescape")


def _new_git_dir() -> str:
    """Return a command that makes a git folder in which nothing is configured, in place of the one that is there."""
    return (
        f"rm -rf {_GIT_DIR} && {_GIT_HOME} git init -q --bare --template= {_GIT_DIR} && mkdir -p {_GIT_DIR}/info && "
        f"{_write(f'{_GIT_DIR}/info/attributes', _NO_CONVERSION.encode())}"
    )


def _write(path: str, content: bytes) -> str:
    """Return a command that writes a file as whoever runs it."""
    return f"printf %s {base64.b64encode(content).decode()} | base64 -d > {path}"


def _trusted(sandbox: Sandbox, script: str, complaint: str) -> CommandResult:
    result = sandbox.execute(f"set -eu -o pipefail; {script}", timeout_s=_TIMEOUT_S, trusted=True)
    if result.timed_out:
        raise SandboxError(f"{complaint}: it took longer than {_TIMEOUT_S:.0f} s.")
    if result.exit_code != 0:
        raise PatchError(f"{complaint}: {result.output.strip()[-500:]}")
    return result
