"""What a patch may hold, and what must never be applied."""

import contextlib
import subprocess
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sandbox.errors import PatchError
from sandbox.patch import PatchRules, inspect_patch, subset
from sandbox.patch_text import quote, read, unquote
from sandbox.results import RunnerName, TestCommand
from tests.support.patches import SHA, change, new
from tests.support.small_project import small_project


def test_a_plain_change_is_read_and_passes() -> None:
    report = inspect_patch(change("src/a.py") + new("src/b.py", ["x = 1", "y = 2"]))
    assert report.rejected == []
    assert report.warnings == []
    assert [(f.path, f.kind) for f in report.files] == [("src/a.py", "modified"), ("src/b.py", "added")]
    assert (report.added_lines, report.removed_lines) == (3, 1)


@pytest.mark.parametrize(
    "path",
    [
        "/etc/passwd",
        "../x",
        "a/../../x",
        "a/./b",
        "a//b",
        "~/x",
        "C:/x",
        ".git/config",
        ".GIT/hooks/pre-commit",
        "sub/.git/config",
        "git~1/config",
        ".git./config",
        ".git /config",
        ".git::$INDEX_ALLOCATION/config",
        ".g\u200cit/config",
        ".github/workflows/ci.yml",
        ".GitHub/Workflows/deep/ci.yml",
        ".gitlab-ci.yml",
        "sub/Jenkinsfile",
        ".gitmodules",
        ".acrouter.yml",
        "a\\b",
        "bell\x07",
    ],
)
def test_paths_that_must_not_be_written_are_rejected(path: str) -> None:
    assert inspect_patch(new(path, ["x"])).rejected
    assert inspect_patch(change(path)).rejected


@pytest.mark.parametrize(
    "path", [".github/FUNDING.yml", ".gitignore", "git/x.py", "a..b/c", "workflows/ci.yml", "ü.py"]
)
def test_paths_that_only_look_alike_pass(path: str) -> None:
    assert inspect_patch(new(path, ["x"])).rejected == []


def test_quoted_names_are_unquoted_before_they_are_judged() -> None:
    patch = new("x", ["y"]).replace("a/x b/x", r'"a/\056git/config" "b/\056git/config"')
    patch = patch.replace("+++ b/x", r'+++ "b/\056git/config"')
    assert ".git folder" in inspect_patch(patch).rejected[0]


@pytest.mark.parametrize(("mode", "word"), [("120000", "symbolic link"), ("160000", "repository of its own")])
def test_links_and_submodules_are_rejected(mode: str, word: str) -> None:
    assert word in inspect_patch(new("x", ["/etc/passwd"], mode)).rejected[0]


def test_a_changed_link_is_rejected_too() -> None:
    assert inspect_patch(change("x", header=f"index {SHA}..{SHA} 120000")).rejected


@pytest.mark.parametrize(("old", "now"), [("120000", "100644"), ("100644", "120000"), ("160000", "100644")])
def test_what_was_a_link_or_becomes_one_is_rejected(old: str, now: str) -> None:
    turned = change("x", header=f"old mode {old}\nnew mode {now}\nindex {SHA}..{SHA[::-1]}")
    assert inspect_patch(turned).findings[0].kind in ("symlink", "submodule")


def test_a_patch_may_touch_what_any_of_the_allowed_patterns_names_and_nothing_else() -> None:
    rules = PatchRules(allowed=("src/**", "*.md"))
    assert inspect_patch(change("src/a.py") + change("docs/b.md"), rules).rejected == []
    [reason] = inspect_patch(change("src/a.py") + change("setup.py"), rules).rejected
    assert reason == "'setup.py' is outside what a model may change here (src/**, *.md)."


@pytest.mark.parametrize(
    "headers",
    [
        ["new file mode 120000", f"index {'0' * 40}..{SHA} 100644"],
        ["new file mode 160000", f"index {'0' * 40}..{SHA} 100644"],
        [f"index {'0' * 40}..{SHA} 100644", "new file mode 120000"],
        ["new file mode 120000", "new file mode 100644"],
        ["new file mode 120000", "new mode 100644"],
        ["new file mode 100644", "old mode 100644"],
    ],
)
def test_a_new_file_that_says_its_mode_twice_is_no_patch_of_gits(headers: list[str]) -> None:
    patch = new("x", ["/etc/passwd"]).split("\n")
    assert inspect_patch("\n".join([patch[0], *headers, *patch[3:]])).findings[0].kind == "unreadable"


@pytest.mark.parametrize(
    "headers",
    [
        ["old mode 100644", "new mode 120000", f"index {SHA}..{SHA[::-1]} 100644"],
        [f"index {SHA}..{SHA[::-1]} 120000", f"index {SHA}..{SHA[::-1]} 100644"],
        ["new mode 100644", f"index {SHA}..{SHA[::-1]}"],
        [f"index {SHA}..{SHA[::-1]}"],
        [],
    ],
)
def test_a_change_that_does_not_say_once_what_the_file_is_may_be_of_a_link(headers: list[str]) -> None:
    patch = change("x").split("\n")
    assert inspect_patch("\n".join([patch[0], *headers, *patch[2:]])).findings[0].kind == "unreadable"


@pytest.mark.parametrize("headers", [["index {old}..{new}"], ["index {old}..{new} 100644"], []])
def test_what_git_makes_a_link_of_never_passes(tmp_path: Path, headers: list[str]) -> None:
    project = small_project(tmp_path)
    link = project.mirror.tree_with_patch(project.sha, new("link", ["README.md"], "120000"))
    patch = change("link", removed=["README.md"], added=["/etc/passwd"]).split("\n")
    text = "\n".join([patch[0], *(header.format(old=SHA, new=SHA) for header in headers), *patch[2:]])
    applied = True
    try:
        project.mirror.tree_with_patch(link, text)
    except PatchError:
        applied = False
    assert not applied or inspect_patch(text).rejected


def test_modes_are_remarked() -> None:
    report = inspect_patch(
        "diff --git a/x b/x\nold mode 100644\nnew mode 100755\n" + new("run.sh", ["ls"], mode="100755")
    )
    assert report.rejected == []
    assert len(report.warnings) == 2


@pytest.mark.parametrize(
    "patch",
    [
        "just words\n",
        "--- a/x\n+++ b/x\n@@ -1 +1 @@\n-a\n+b\n",
        change("x") + "--- a/../y\n+++ b/../y\n@@ -1 +1 @@\n-a\n+b\n",
        change("x") + "junk\n",
        change("x") + change("x"),
        change("x").replace("+++ b/x", "+++ b/y"),
        change("x").replace("--- a/x", "--- a/y"),
        change("x").replace("b/x\n", "b/y\n", 1),
        change("x", header="similarity index 100%\nrename from x\nrename to y"),
        change("x", header="copy from .git/config\ncopy to x"),
        change("x").replace("@@ -1,1", "@@ -1,9"),
        change("x").replace("@@ -1,1", f"@@ -1,{'9' * 5_000}"),
        change("x").rstrip("\n"),
        change("x")[:-4],
        new("x", ["y"]).replace("--- /dev/null", "--- a/x"),
        f"diff --git a/x b/x\nindex {SHA}..{SHA} 100644\nBinary files a/x and b/x differ\n",
        f"diff --git a/x b/x\nindex {SHA}..{SHA} 100644\nGIT binary patch\nliteral 3\n--- a/../y\n",
        "From: me\n\n" + change("x"),
    ],
)
def test_what_git_would_not_write_is_unreadable_and_rejected(patch: str) -> None:
    report = inspect_patch(patch)
    assert report.rejected
    assert report.findings[-1].kind == "unreadable"


def test_line_ends_belong_to_the_lines() -> None:
    (file,) = read(change("x", removed=["a\r"], added=["b\r", "c\x0cd\u2028e"]))
    assert file.removed == ("a",)
    assert file.added == ("b", "c\x0cd\u2028e")


def test_carriage_returns_in_headers_are_refused() -> None:
    plain = change("src/a.py")
    for patch in (
        plain.replace("\n", "\r\n"),
        plain.replace("+++ b/src/a.py", "+++ b/src/a.py\r"),
        plain.replace("src/a.py", "src/a.py\r"),
        plain.replace("100644\n", "100644\r\n"),
    ):
        assert inspect_patch(patch).rejected


def test_lines_that_look_like_headers_are_content() -> None:
    (file,) = read(change("x", removed=["-- a/../y"], added=["++ b/../y", "diff --git a/q b/q"]))
    assert file.removed == ("-- a/../y",)
    assert file.added == ("++ b/../y", "diff --git a/q b/q")


def test_size_and_number_are_limited() -> None:
    rules = PatchRules(max_bytes=1000, max_files=2)
    assert "bytes" in inspect_patch(new("x", ["y" * 2000]), rules).rejected[0]
    assert "3 files" in inspect_patch("".join(change(f"f{n}") for n in range(3)), rules).rejected[0]


def test_secrets_are_rejected_without_being_repeated() -> None:
    token = "ghp_" + "a1B2" * 9
    (reason,) = inspect_patch(new("config.py", [f'TOKEN = "{token}"'])).rejected
    assert "GitHub token" in reason
    assert token not in reason


def test_configured_globs_block() -> None:
    rules = PatchRules(blocked=("*.lock", "deploy/**", "src/*/secret.py"))
    for path in ("poetry.lock", "a/b.lock", "deploy/x/y", "src/a/secret.py"):
        assert inspect_patch(change(path), rules).rejected
    for path in ("lock.py", "src/a/b/secret.py", "deployment/x"):
        assert inspect_patch(change(path), rules).rejected == []


@pytest.mark.parametrize(
    ("command", "runner", "path"),
    [
        ("cd backend && python3 -m pytest", "pytest", "backend/pyproject.toml"),
        ("python3 -m pytest", "pytest", ".pytest.ini"),
        ("python3 -m pytest", "pytest", "pytest.toml"),
        ("python3 -m pytest", "pytest", "x.egg-info/entry_points.txt"),
        ("cd backend && pytest --config-file=ci.cfg", "pytest", "backend/ci.cfg"),
        ("npm test --prefix packages/a", "exit_code", "packages/a/package.json"),
        ("npm test", "exit_code", ".mocharc.yml"),
        ("make -C app test", "exit_code", "app/Makefile"),
        ("npx --no-install jest packages/a/src", "jest", "packages/a/package.json"),
    ],
)
def test_what_says_how_tests_are_run_is_of_the_tests_in_each_folder_that_is_named(
    command: str, runner: RunnerName, path: str
) -> None:
    report = inspect_patch(change(path, added=["testing = 1"]), None, TestCommand(command, runner, "test"))
    assert (len(report.test_files), report.edits_test_support, report.source_files) == (1, True, [])


def test_a_lock_file_is_remarked_because_the_tests_ran_with_the_old_one() -> None:
    report = inspect_patch(change("web/package-lock.json"))
    assert report.rejected == []
    assert "versions that it named before" in report.warnings[0]


def test_parts_of_a_patch_are_patches() -> None:
    patch = change("src/a.py") + new("tests/test_a.py", ["assert 1"])
    report = inspect_patch(patch)
    assert subset(report.source_files) == change("src/a.py")
    assert subset(report.test_files) + subset(report.source_files) != patch
    assert subset(report.files) == patch


@given(st.text(st.characters(codec="utf-8", exclude_characters="\0/"), min_size=1))
def test_quoting_is_undone_by_unquoting(name: str) -> None:
    assert unquote(quote(name)) == name


@given(st.text())
@settings(max_examples=300)
def test_no_text_makes_the_reader_fall_over(text: str) -> None:
    for patch in (text, "diff --git " + text, change("x") + text, change("x")[:-5] + text):
        with contextlib.suppress(PatchError):
            read(patch)
        inspect_patch(patch)


@given(
    files=st.dictionaries(
        st.sampled_from(["a.txt", "b c.txt", "d/é.txt", "e\tf", 'g"h', "i\\j"]),
        st.tuples(st.none() | st.text(max_size=60), st.none() | st.text(max_size=60)),
        min_size=1,
        max_size=3,
    )
)
@settings(max_examples=15, deadline=None)
def test_what_git_really_writes_is_read(
    tmp_path_factory: pytest.TempPathFactory, files: dict[str, tuple[str | None, ...]]
) -> None:
    folder = tmp_path_factory.mktemp("repo")

    def git(*arguments: str) -> bytes:
        command = ["git", "-c", "user.name=t", "-c", "user.email=t@t", "-c", "core.autocrlf=false", *arguments]
        return subprocess.run(command, cwd=folder, check=True, capture_output=True).stdout

    def write(position: int) -> None:
        for name, contents in files.items():
            path = Path(folder, name)
            path.parent.mkdir(exist_ok=True)
            content = contents[position]
            path.unlink(missing_ok=True)
            if content is not None:
                path.write_bytes(content.encode("utf-8", "replace"))

    git("init", "-q")
    write(0)
    git("add", "-A")
    git("commit", "-q", "--allow-empty", "-m", "base")
    write(1)
    git("add", "-A")
    patch = git("diff", "--cached", "--binary", "--full-index", "--no-renames").decode()
    changed = {name for name, (old, now) in files.items() if (old is None) != (now is None) or old != now}
    changed = {n for n in changed if _bytes(files[n][0]) != _bytes(files[n][1])}
    assert {f.path for f in read(patch)} == changed


def _bytes(text: str | None) -> bytes | None:
    return None if text is None else text.encode("utf-8", "replace")
