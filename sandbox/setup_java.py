"""How Maven and Gradle are made to fetch all that the tests need, so that they run without the network afterwards."""

from sandbox.guest_sandbox import GRADLE, GRADLE_FILES, VENV
from sandbox.setup_tree import Found, Tree, tried, where_there_is

BUILD_FILES = frozenset({"pom.xml", "gradle.properties", "gradle-wrapper.properties", "libs.versions.toml"})
"""Names that say what is fetched, in any folder, as do all that end in BUILD_SUFFIXES."""
BUILD_SUFFIXES = (".gradle", ".gradle.kts", ".lockfile")

# Surefire fetches what runs the tests only when it has tests to run. It finds them all and runs none.
_NO_TEST = "-Dtest='*#fetchedByTheSetUp' -DfailIfNoTests=false -Dsurefire.failIfNoSpecifiedTests=false"
_MAVEN = f"mvn -B -q -Dmaven.repo.local={VENV}/m2"

_FETCH = """
allprojects {
    task acrouterFetch {
        doLast {
            (configurations.toList() + buildscript.configurations.toList()).findAll { it.canBeResolved }.each { each ->
                try {
                    each.files
                } catch (Exception error) {
                    logger.lifecycle("${each.name} could not be fetched: ${error.message}")
                }
            }
        }
    }
}
"""
"""Gradle (3.3 and newer) has no task for this. Not every configuration is meant to be resolved, so each is tried."""
# A tree of links to what is never written again; the rest is small, and each sandbox gets its own of it.
_PUT_ASIDE = f"""
put_aside() {{
    mkdir -p "$(dirname "{GRADLE_FILES}/$1")" && mv "$1" "{GRADLE_FILES}/$1" && ln -s "{GRADLE_FILES}/$1" "$1"
}}
cd {GRADLE} && rm -rf daemon caches/build-cache-* wrapper/dists/*/*/*.zip
for path in wrapper/dists/*/*/*/ jdks/*/ caches/modules-*/files-*/; do
    if [ -d "$path" ]; then put_aside "${{path%/}}" || exit 1; fi
done
find . -name '*.jar' -type f -size +256k | while read -r path; do put_aside "${{path#./}}" || exit 1; done
"""


def maven(tree: Tree) -> Found | None:
    """Run the build up to its tests; what later phases need is fetched where it can be."""
    if "pom.xml" not in tree.files:
        return None
    more = tried(f"{_MAVEN} dependency:go-offline", "what only later phases need")
    return Found([where_there_is("mvn", f"{_MAVEN} -Dmaven.test.failure.ignore {_NO_TEST} test && {more}")], "pom.xml")


def gradle(tree: Tree) -> Found | None:
    """Resolve all configurations and compile; the wrapper, where there is one, fetches its Gradle."""
    names = ("settings.gradle", "settings.gradle.kts", "build.gradle", "build.gradle.kts")
    source = next((name for name in names if name in tree.names), None)
    if source is None:
        return None
    program, needed = ("bash ./gradlew", "java") if "gradlew" in tree.names else ("gradle", "gradle")
    # The wrapper may have been committed without its x bit; bash runs those that are written for sh, too.
    script, own = "/tmp/acrouter-fetch.gradle", "--project-cache-dir /tmp/acrouter-gradle"  # noqa: S108  (inside)
    call = f"{program} --no-daemon -Dorg.gradle.configuration-cache=false {own} -I {script}"
    compiled = tried(f"{call} --continue testClasses", "what only a compilation fetches")
    steps = (
        f"export GRADLE_USER_HOME={GRADLE}\ncat > {script} <<'ACROUTER_END'{_FETCH}ACROUTER_END\n"
        f"{call} acrouterFetch || exit 1\n{compiled}\n{_PUT_ASIDE.strip()}"
    )
    return Found([where_there_is(needed, f"(\n{steps}\n)")], source)
