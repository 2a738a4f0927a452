"""A set-up runs once with the network, is kept, and later sandboxes start from it offline."""

import base64
import functools
import http.server
import threading
import time
import uuid
import zipfile
from collections.abc import Iterator
from contextlib import closing
from ipaddress import ip_network
from pathlib import Path

import docker
import pytest

from sandbox import setup_plan
from sandbox.errors import ImageError
from sandbox.types import Backend, CacheLimits, Limits, SandboxSpec, SetupPlan
from tests.support.repositories import make_archive

LIMITS = Limits(memory_mb=512, disk_mb=128)
LABELS = {"task": "1", "owner": "tests"}
SECRET = f"canary{uuid.uuid4().hex}"
# Its own build backend: nothing has to be downloaded, and it writes a file into the tree as version plug-ins do.
BUILDER = """
import zipfile
METADATA = "Metadata-Version: 2.1\\nName: demo\\nVersion: 1\\nRequires-Dist: tiny\\n"
def build_editable(folder, config_settings=None, metadata_directory=None):
    open("src/demo/_version.py", "w").write("version = '3.2.1'\\n")
    open("a.txt", "a").write("changed by the set-up")
    with zipfile.ZipFile(folder + "/demo-1-py3-none-any.whl", "w") as wheel:
        wheel.writestr("demo.pth", "/workspace/src\\n")
        wheel.writestr("demo-1.dist-info/METADATA", METADATA)
        wheel.writestr("demo-1.dist-info/WHEEL", "Wheel-Version: 1.0\\nRoot-Is-Purelib: true\\nTag: py3-none-any\\n")
        wheel.writestr("demo-1.dist-info/RECORD", "")
    return "demo-1-py3-none-any.whl"
"""
PROJECT = {
    "pyproject.toml": '[build-system]\nrequires = []\nbuild-backend = "builder"\nbackend-path = ["."]\n'
    '[project]\nname = "demo"\nversion = "1"\ndependencies = ["tiny"]\n',
    "builder.py": BUILDER,
    "src/demo/__init__.py": "from demo._version import version\nanswer = 1\n",
    "a.txt": "as committed\n",
}


class PrivateIndex(http.server.SimpleHTTPRequestHandler):
    """A package index that wants a password."""

    def do_GET(self) -> None:
        expected = "Basic " + base64.b64encode(f"reader:{SECRET}".encode()).decode()
        if self.headers.get("Authorization") != expected:
            self.send_response(401)
            self.send_header("WWW-Authenticate", 'Basic realm="index"')
            self.end_headers()
            return
        super().do_GET()

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002
        pass


@pytest.fixture
def private_index(backend: Backend, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """pip of this host is configured for a private index that has the package `tiny`."""
    folder = tmp_path / "index" / "simple" / "tiny"
    folder.mkdir(parents=True)
    with zipfile.ZipFile(folder / "tiny-1-py3-none-any.whl", "w") as wheel:
        wheel.writestr("tiny.py", "size = 7\n")
        wheel.writestr("tiny-1.dist-info/METADATA", "Metadata-Version: 2.1\nName: tiny\nVersion: 1\n")
        wheel.writestr("tiny-1.dist-info/WHEEL", "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n")
        wheel.writestr("tiny-1.dist-info/RECORD", "")
    handler = functools.partial(PrivateIndex, directory=str(tmp_path / "index"))
    server = http.server.ThreadingHTTPServer(("0.0.0.0", 0), handler)  # noqa: S104
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    host = "127.0.0.1"
    if backend.name == "docker":
        host = str(
            next(ip_network(docker.from_env().networks.get("bridge").attrs["IPAM"]["Config"][0]["Subnet"]).hosts())
        )
    monkeypatch.setenv("PIP_INDEX_URL", f"http://reader:{SECRET}@{host}:{server.server_address[1]}/simple")
    monkeypatch.setenv("PIP_TRUSTED_HOST", host)
    monkeypatch.setenv("NO_PROXY", host)
    yield
    server.shutdown()
    server.server_close()
    thread.join()


def plan_for(archive: Path, backend: Backend) -> SetupPlan:
    # A key of this run alone: the images of earlier runs must not answer.
    return setup_plan.detect(archive, commands=None, base=backend.ensure_base() + uuid.uuid4().hex, shared_with="tests")


@pytest.mark.usefixtures("private_index")
def test_dependencies_are_installed_once_and_the_fresh_tree_is_what_runs(
    backend: Backend, tmp_path: Path, forget: list[str]
) -> None:
    archive = make_archive(tmp_path / "tree.tar", PROJECT)
    plan = plan_for(archive, backend)
    image = backend.prepare(archive, plan, timeout_s=100, labels=LABELS)
    forget.append(image)
    assert backend.prepare(tmp_path / "not there.tar", plan, timeout_s=1, labels=LABELS) == image

    changed = make_archive(
        tmp_path / "changed.tar", PROJECT | {"src/demo/__init__.py": "from demo._version import *\nx = 2\n"}
    )
    opened = backend.open(SandboxSpec(image, LABELS, LIMITS))
    try:
        assert opened.read_file("a.txt") is None
        opened.put_tree(changed)
        code = "import demo, tiny; print(demo.x, demo.version, tiny.size)"
        assert opened.execute(f'cd / && python -c "{code}"', timeout_s=20).output == "2 3.2.1 7\n"
        assert opened.read_file("a.txt") == b"as committed\n"
        search = f"grep -rslF {SECRET} /opt /etc /home /root /tmp /var /workspace; env | grep -c PIP_INDEX"
        assert opened.execute(search, timeout_s=100, trusted=True).output == "0\n"
    finally:
        opened.close()
    if backend.name == "docker":
        api = docker.from_env().api
        assert SECRET not in f"{api.inspect_image(image)} {api.history(image)}"  # type: ignore[no-untyped-call]
    assert backend.remove_task("1") == 0


def test_a_failing_set_up_shows_its_end_and_leaves_nothing(backend: Backend, tmp_path: Path) -> None:
    archive = make_archive(tmp_path / "tree.tar", {"a.txt": "a"})
    key = uuid.uuid4().hex
    plan = SetupPlan(("echo fine", "seq 100000; echo the reason >&2; exit 7", "echo never"), key, ".acrouter.yml")
    for _ in range(2):
        with pytest.raises(ImageError) as failed:
            backend.prepare(archive, plan, timeout_s=60, labels=LABELS)
        assert "exit code 7" in str(failed.value)
        assert str(failed.value).endswith("the reason\n")
        assert len(str(failed.value)) < 5000
    assert backend.remove_task("1") == 0


def test_one_repositorys_set_up_keeps_no_other_task_waiting(
    backend: Backend, tmp_path: Path, forget: list[str]
) -> None:
    archive = make_archive(tmp_path / "tree.tar", {"a.txt": "a"})
    endless = SetupPlan(("sleep 100",), uuid.uuid4().hex, "a test")
    quick = SetupPlan(("true",), uuid.uuid4().hex, "a test")
    ended = threading.Event()

    def never_ends() -> None:
        with pytest.raises(ImageError):
            backend.prepare(archive, endless, timeout_s=90, labels={"task": "endless", "owner": "tests"})
        ended.set()

    thread = threading.Thread(target=never_ends)
    thread.start()
    try:
        time.sleep(2)  # it has begun
        backend.ensure_base()
        forget.append(backend.prepare(archive, quick, timeout_s=60, labels=LABELS))
        backend.evict(CacheLimits(10**12, 10**9))
        assert not ended.is_set()
    finally:
        assert backend.remove_task("endless") == 1
        thread.join()


def test_two_tasks_that_need_the_same_set_up_make_it_once(backend: Backend, tmp_path: Path, forget: list[str]) -> None:
    archive = make_archive(tmp_path / "tree.tar", {"a.txt": "a"})
    plan = SetupPlan(("sleep 4",), uuid.uuid4().hex, "a test")
    first: list[str] = []
    thread = threading.Thread(target=lambda: first.append(backend.prepare(archive, plan, timeout_s=60, labels=LABELS)))
    thread.start()
    time.sleep(2)  # it has begun
    second = backend.prepare(tmp_path / "not there.tar", plan, timeout_s=60, labels=LABELS)
    thread.join()
    forget.append(second)
    assert first == [second]


def test_a_set_up_past_its_time_is_named(backend: Backend, tmp_path: Path) -> None:
    archive = make_archive(tmp_path / "tree.tar", {"a.txt": "a"})
    plan = SetupPlan(("sleep 100",), uuid.uuid4().hex, ".acrouter.yml")
    with pytest.raises(ImageError, match="did not end within 1 s, in: sleep 100"):
        backend.prepare(archive, plan, timeout_s=1, labels=LABELS)


def test_a_repository_that_needs_nothing_uses_the_base(backend: Backend, tmp_path: Path) -> None:
    archive = make_archive(tmp_path / "tree.tar", {"a.txt": "a"})
    plan = setup_plan.detect(archive, commands=None, base="b", shared_with="tests")
    assert backend.prepare(archive, plan, timeout_s=1, labels=LABELS) == backend.ensure_base()


def test_each_package_of_a_workspace_finds_its_modules_in_every_fresh_tree(
    backend: Backend, tmp_path: Path, forget: list[str]
) -> None:
    """As npm, pnpm and yarn lay them: in several folders, with links between these, and to packages of the tree."""
    installs = """
        mkdir -p node_modules/@own node_modules/pad node_modules/.bin b/node_modules node_modules/.store/deep
        echo padded > node_modules/pad/index.js
        echo deep > node_modules/.store/deep/index.js
        ln -s ../../a node_modules/@own/a
        ln -s ../@own/a/run.js node_modules/.bin/run
        ln -s ../../node_modules/.store/deep b/node_modules/deep
        """
    files = {
        "a/index.js": "mine\n",
        "a/run.js": "run\n",
        "b/index.js": "",
        "c/node_modules/own/index.js": "committed\n",
    }
    archive = make_archive(tmp_path / "tree.tar", files)
    image = backend.prepare(archive, SetupPlan([installs], uuid.uuid4().hex, "test"), timeout_s=60, labels=LABELS)
    forget.append(image)
    later = make_archive(tmp_path / "later.tar", {**files, "a/index.js": "changed\n"})
    with closing(backend.open(SandboxSpec(image, LABELS, LIMITS))) as sandbox:
        sandbox.put_tree(later)
        names = "pad/index.js @own/a/index.js .bin/run"
        found = sandbox.execute(f"cd node_modules && cat {names} ../b/node_modules/deep/index.js", timeout_s=10)
        assert found.output == "padded\nchanged\nrun\ndeep\n"
        assert sandbox.execute("cat c/node_modules/own/index.js", timeout_s=10).output == "committed\n"
        assert sandbox.execute("find . -type f | wc -l", timeout_s=10).output.strip() == str(len(files))
