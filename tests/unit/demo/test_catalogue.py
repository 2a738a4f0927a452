"""The catalogue of bugs, without a download."""

import io
import tarfile
from pathlib import Path

import pytest
from pydantic import ValidationError

from bot.demo import bugs
from bot.demo.bugs import Bug, find_bug, load_catalogue
from bot.demo.errors import CatalogueError
from bot.demo.materialise import TreeFile, commit_tree, git, read_tree
from bot.demo.scripted.models import SCRIPTED_MODELS, SKILLED


def make_sdist(path: Path, members: dict[str, bytes]) -> Path:
    with tarfile.open(path, "w:gz") as archive:
        for name, content in members.items():
            member = tarfile.TarInfo(name)
            member.size = len(content)
            member.mode = 0o755 if name.endswith(".sh") else 0o644
            archive.addfile(member, io.BytesIO(content))
    return path


def test_the_catalogue_holds_at_least_six_bugs_of_at_least_five_projects() -> None:
    catalogue = load_catalogue()
    assert len(catalogue) >= 6
    assert len({bug.project for bug in catalogue}) >= 5


def test_every_bug_is_solved_by_the_large_model_and_each_behaviour_occurs() -> None:
    catalogue = load_catalogue()
    assert all(bug.skills["scripted-large"] == "solves" for bug in catalogue)
    assert all(set(bug.skills) == set(SKILLED) for bug in catalogue)
    assert {behaviour for bug in catalogue for behaviour in bug.skills.values()} == {
        "solves",
        "misses",
        "breaks",
        "nothing",
    }


def test_a_behaviour_without_its_change_is_refused() -> None:
    bug = find_bug("sqlparse-begin-transaction")
    with pytest.raises(ValidationError, match="add the key 'misses'"):
        Bug.model_validate(bug.model_dump() | {"skills": {"scripted-small": "misses"}})


def test_every_issue_shows_a_reproduction() -> None:
    assert all(">>> " in bug.issue for bug in load_catalogue())


def test_an_unknown_bug_gets_a_suggestion() -> None:
    with pytest.raises(CatalogueError, match="Did you mean 'xmltodict-none-attribute'"):
        find_bug("xmltodict-none-attribut")


def test_a_wrong_key_is_named_with_its_file(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    (tmp_path / "one.yaml").write_text("project: one\ntitel: x\n")
    monkeypatch.setattr(bugs, "CATALOGUE", tmp_path)
    load_catalogue.cache_clear()
    try:
        with pytest.raises(CatalogueError, match=r"one\.yaml: titel: unknown key 'titel'\. Did you mean 'title'"):
            load_catalogue()
    finally:
        load_catalogue.cache_clear()


def test_the_prices_of_the_scripted_models_rise_with_their_skill() -> None:
    prices = [model.input_usd_per_mtok for model in SCRIPTED_MODELS if model.name in SKILLED]
    assert prices == sorted(set(prices))


def test_a_tree_leaves_out_what_packaging_adds(tmp_path: Path) -> None:
    members = {"p-1/PKG-INFO": b"", "p-1/p.egg-info/SOURCES.txt": b"", "p-1/p.py": b"x = 1\n", "p-1/run.sh": b""}
    tree = read_tree(make_sdist(tmp_path / "p-1.tar.gz", members))
    assert tree == {"p.py": TreeFile(b"x = 1\n"), "run.sh": TreeFile(b"", executable=True)}


def test_a_tree_leaves_out_what_git_would_read_as_a_repository(tmp_path: Path) -> None:
    members = {"p-1/.git/config": b"", "p-1/sub/.GIT/hooks/pre-commit": b"", "p-1/tests/module/.git": b"gitdir: x"}
    assert read_tree(make_sdist(tmp_path / "p-1.tar.gz", members)) == {}


@pytest.mark.parametrize("name", ["p-1/../../evil", "/p-1/evil"])
def test_a_member_that_leaves_its_tree_is_refused(name: str, tmp_path: Path) -> None:
    with pytest.raises(CatalogueError, match="leads out of its tree"):
        read_tree(make_sdist(tmp_path / "p-1.tar.gz", {name: b"x"}))


def test_links_are_left_out(tmp_path: Path) -> None:
    path = tmp_path / "p-1.tar.gz"
    with tarfile.open(path, "w:gz") as archive:
        link = tarfile.TarInfo("p-1/passwd")
        link.type, link.linkname = tarfile.SYMTYPE, "/etc/passwd"
        archive.addfile(link)
    assert read_tree(path) == {}


def test_the_same_tree_gives_the_same_commit_everywhere(tmp_path: Path) -> None:
    tree = {"a b.py": TreeFile(b"\x00\xff"), 'q"uote.txt': TreeFile(b""), "run.sh": TreeFile(b"#!", executable=True)}
    shas = []
    for name in ("one", "two"):
        (tmp_path / name).mkdir()
        commit_tree(tmp_path / name, tree, "p 1, as released")
        shas.append(git(tmp_path / name, "rev-parse", "main").strip())
        listing = git(tmp_path / name, "ls-tree", "-z", "main").split("\0")
        assert [line.split("\t")[-1] for line in listing[:-1]] == sorted(tree)
    assert shas[0] == shas[1]
    assert shas[0] == "da8e1670864f6d6f87a99edeaaa497f2c0d93430"
