"""Source distributions come from the index that pip is set up for, and only with the right hash."""

import functools
import hashlib
import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from bot.demo.errors import DownloadError
from bot.demo.package_index import IndexSettings, Sdist, fetch, pip_index_settings

CONTENT = b"the release"
SHA256 = hashlib.sha256(CONTENT).hexdigest()
SDIST = Sdist("Some_Project", "1.0", SHA256)


class Quiet(SimpleHTTPRequestHandler):
    extensions_map = {"": "text/html", ".json": "application/vnd.pypi.simple.v1+json"}  # noqa: RUF012

    def log_message(self, format: str, *arguments: object) -> None:  # noqa: A002
        pass


class JsonIndex(Quiet):
    def send_head(self):  # type: ignore[no-untyped-def]
        if self.path.endswith("/"):
            self.path += "index.json"
        return super().send_head()


@contextmanager
def serve(folder: Path, handler: type[Quiet] = Quiet) -> Iterator[str]:
    server = ThreadingHTTPServer(("127.0.0.1", 0), functools.partial(handler, directory=str(folder)))
    thread = threading.Thread(target=server.serve_forever, args=(0.05,), daemon=True)
    thread.start()
    try:
        yield f"127.0.0.1:{server.server_address[1]}"
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


@pytest.fixture
def index(tmp_path: Path) -> Path:
    """An index folder in both forms, with one release, and one file beside it that is not what its hash says."""
    page = tmp_path / "index" / "simple" / "some-project"
    page.mkdir(parents=True)
    (page / "some_project-1.0.tar.gz").write_bytes(CONTENT)
    (page / "index.html").write_text(f'<a href="some_project-1.0.tar.gz#sha256={SHA256}">some_project-1.0.tar.gz</a>')
    file = {"filename": "x", "url": "some_project-1.0.tar.gz", "hashes": {"sha256": SHA256}}
    (page / "index.json").write_text(json.dumps({"files": [file]}))
    return tmp_path / "index"


@pytest.mark.parametrize("handler", [Quiet, JsonIndex])
def test_a_release_is_found_on_both_kinds_of_page_and_kept(handler: type[Quiet], index: Path, tmp_path: Path) -> None:
    with serve(index, handler) as address:
        path = fetch(SDIST, tmp_path / "cache", IndexSettings((f"http://{address}/simple",)))
    assert path.read_bytes() == CONTENT
    assert list((tmp_path / "cache").iterdir()) == [path]
    # The index is gone: the second time comes from the cache.
    assert fetch(SDIST, tmp_path / "cache", IndexSettings((f"http://{address}/simple",))) == path


def test_a_file_with_another_hash_is_refused(index: Path, tmp_path: Path) -> None:
    (index / "simple" / "some-project" / "some_project-1.0.tar.gz").write_bytes(b"something else")
    with serve(index) as address, pytest.raises(DownloadError, match="has another hash"):
        fetch(SDIST, tmp_path / "cache", IndexSettings((f"http://{address}/simple",)))
    assert not (tmp_path / "cache").exists()


def test_a_damaged_cache_is_downloaded_again(index: Path, tmp_path: Path) -> None:
    with serve(index) as address:
        settings = IndexSettings((f"http://{address}/simple",))
        fetch(SDIST, tmp_path / "cache", settings).write_bytes(b"half")
        assert fetch(SDIST, tmp_path / "cache", settings).read_bytes() == CONTENT


def test_the_next_index_is_asked_when_one_does_not_answer(index: Path, tmp_path: Path) -> None:
    with serve(index) as address:
        settings = IndexSettings(("http://127.0.0.1:9/simple", f"http://{address}/simple"))
        assert fetch(SDIST, tmp_path / "cache", settings).read_bytes() == CONTENT


def test_an_error_names_the_index_without_its_password(tmp_path: Path) -> None:
    settings = IndexSettings(("http://user:hunter2@127.0.0.1:9/simple",))
    with pytest.raises(DownloadError) as caught:
        fetch(SDIST, tmp_path / "cache", settings)
    assert "127.0.0.1:9/simple: ConnectError" in str(caught.value)
    assert "hunter2" not in str(caught.value)


@pytest.mark.parametrize("content", [None, "no certificates"])
def test_an_error_names_the_certificates_that_cannot_be_read(content: str | None, tmp_path: Path) -> None:
    bundle = tmp_path / "bundle.pem"
    if content:
        bundle.write_text(content)
    with pytest.raises(DownloadError, match=f"cert` names {bundle}"):
        fetch(SDIST, tmp_path / "cache", IndexSettings(("https://127.0.0.1:9/simple",), str(bundle)))


def test_an_address_that_is_none_is_named_and_the_next_index_is_asked(index: Path, tmp_path: Path) -> None:
    with serve(index) as address:
        settings = IndexSettings(("http://mirror:port/simple", f"http://{address}/simple"))
        assert fetch(SDIST, tmp_path / "cache", settings).read_bytes() == CONTENT
    with pytest.raises(DownloadError, match="mirror:port/simple: InvalidURL"):
        fetch(SDIST, tmp_path / "none", IndexSettings(("http://mirror:port/simple",)))


def test_pips_environment_names_the_indexes(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PIP_INDEX_URL", "https://first.example/simple/")
    monkeypatch.setenv("PIP_EXTRA_INDEX_URL", "https://second.example/simple file:///not/over/http")
    monkeypatch.setenv("PIP_CERT", "/some/bundle.pem")
    assert pip_index_settings() == IndexSettings(
        ("https://first.example/simple", "https://second.example/simple"), "/some/bundle.pem"
    )


def test_pips_configuration_file_names_the_index(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    config = tmp_path / "pip.conf"
    config.write_text("[global]\nindex-url = https://mirror.example/simple\n")
    for name in ("PIP_INDEX_URL", "PIP_EXTRA_INDEX_URL"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("PIP_CONFIG_FILE", str(config))
    assert pip_index_settings().urls[0] == "https://mirror.example/simple"
