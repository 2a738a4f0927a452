"""A Gradle home that a set-up leaves: sandboxes share what is large, and write into the rest without sharing it.

The wrapper is a script without an x bit that leaves what Gradle does: no Java is needed, and nothing is fetched.
"""

import uuid
from collections.abc import Iterator
from pathlib import Path

import pytest

from sandbox import setup_plan
from sandbox.types import Backend, Limits, Sandbox, SandboxSpec, SetupPlan
from tests.support.repositories import make_archive

LIMITS = Limits(memory_mb=256, disk_mb=64)
LABELS = {"task": "1", "owner": "tests"}
WRAPPER = """#!/bin/sh
cd "$GRADLE_USER_HOME" 2> /dev/null || { mkdir -p "$GRADLE_USER_HOME" && cd "$GRADLE_USER_HOME"; }
mkdir -p wrapper/dists/gradle/key/gradle-9/bin caches/modules-2/files-2.1 caches/jars-9
echo program > wrapper/dists/gradle/key/gradle-9/bin/gradle
touch wrapper/dists/gradle/key/gradle.zip wrapper/dists/gradle/key/gradle.zip.ok
head -c 20000000 /dev/zero > caches/modules-2/files-2.1/library.jar
head -c 300000 /dev/zero > caches/jars-9/large.jar
echo small > caches/jars-9/small.jar
touch caches/jars-9/jars-9.lock
"""


@pytest.fixture
def with_gradle(backend: Backend, tmp_path: Path, forget: list[str]) -> Iterator[Sandbox]:
    archive = make_archive(tmp_path / "tree.tar", {"settings.gradle": "", "gradlew": WRAPPER})
    found = setup_plan.detect(
        archive, commands=None, base=backend.ensure_base() + uuid.uuid4().hex, shared_with="tests"
    )
    as_with_java = "ln -s /bin/true /opt/venv/bin/java"
    image = backend.prepare(
        archive, SetupPlan((as_with_java, *found.commands), found.cache_key, found.source), timeout_s=60, labels=LABELS
    )
    forget.append(image)
    sandbox = backend.open(SandboxSpec(image, LABELS, LIMITS))
    sandbox.put_tree(archive)
    yield sandbox
    sandbox.close()


def test_a_sandbox_has_a_home_of_its_own_with_links_to_what_is_large(with_gradle: Sandbox) -> None:
    def said(command: str) -> str:
        return with_gradle.execute(f"cd ~/.gradle && {command}", timeout_s=10).output

    assert said("cat wrapper/dists/gradle/key/gradle-9/bin/gradle caches/jars-9/small.jar") == "program\nsmall\n"
    assert said("ls wrapper/dists/gradle/key") == "gradle-9\ngradle.zip.ok\n"
    assert said("find . -type l | sort") == (
        "./caches/jars-9/large.jar\n./caches/modules-2/files-2.1\n./wrapper/dists/gradle/key/gradle-9\n"
    )
    assert said("stat -L -c %s caches/modules-2/files-2.1/library.jar") == "20000000\n"
    assert said("echo held > caches/jars-9/jars-9.lock && cat caches/jars-9/jars-9.lock") == "held\n"
    assert "Read-only file system" in said("echo x > caches/modules-2/files-2.1/library.jar")
    assert "Read-only file system" in said("echo x > /opt/venv/gradle/caches/jars-9/small.jar")
