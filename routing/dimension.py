"""Which of the ten dimensions a task belongs to, and its language, by its words and structure. No network, no model.

Each rule adds points to a dimension; the title counts twice, since people say there what they want. What acrouter
works on is mostly bugs, so a text that says nothing is a bug from an issue or a red CI, and agentic work otherwise.
"""

import re
from collections import Counter, defaultdict
from collections.abc import Iterable
from pathlib import PurePosixPath

from routing.types import Dimension

_TRACEBACK = re.compile(
    r"Traceback \(most recent call last\)|^[ \t]{1,40}at [\w.$<>]+\(.*:\d+\)|^panic: |^thread '.*' panicked|"
    r"\b[A-Z]\w*(?:Error|Exception)\b:",
    re.MULTILINE,
)
_FAILING_TEST = re.compile(r"\bFAILED\b|\bAssertionError\b|\b\d+ failed\b|--- FAIL:|not ok \d+")

_LANGUAGE_NAMES = r"(python|rust|go|java|javascript|typescript|c\+\+|c#|ruby|kotlin|swift|php)(?![\w+#])"
# Points and pattern of each hint; several patterns of one dimension add up.
_HINTS: dict[Dimension, tuple[tuple[float, str], ...]] = {
    Dimension.BUG_FIXING: (
        (2.0, r"\b(bugs?|regress(ion|ed|es)|crash(es|ed|ing)?|broken|incorrect(ly)?|wrong(ly)?)\b"),
        (1.0, r"\b(fix(es|ed)?|fails?|failed|failing|failure|unexpected(ly)?|raises?|throws?)\b"),
        (1.5, r"\b(expected|actual) (behaviou?r|results?|outputs?)\b|\bsteps to reproduce\b"),
        (1.5, r"\b(doesn'?t|does not|no longer|never) (work|handle|return|respect|parse)"),
    ),
    Dimension.CODE_REFACTORING: (
        (3.0, r"\b(refactor(ing|ed)?|clean ?up|restructur(e|ing)|de-?duplicate|simplif(y|ies))\b"),
        (2.0, r"\b(rename|extract|split up|move) (the |this |a )?\w*\s?(class|function|method|module|helper)"),
    ),
    Dimension.TEST_GENERATION: (
        (3.0, r"\b(add|write|generate|missing|more|improve)\b[\w\s,]{0,30}\b(tests?|test coverage|test cases?)\b"),
        (2.0, r"\btest coverage\b"),
    ),
    Dimension.CODE_UNDERSTANDING: (
        (3.0, r"\b(explain|document|what does|how does|why does|docstrings?|understand)\b"),
    ),
    Dimension.DATA_SCIENCE: (
        (2.0, r"\b(pandas|dataframes?|numpy|matplotlib|scikit-learn|sklearn|pytorch|tensorflow|jupyter)\b"),
    ),
    Dimension.ALGORITHM: (
        (2.5, r"\b(algorithms?|time complexity|dynamic programming|shortest path|binary search)\b|\bO\([nN1][^)]*\)"),
    ),
    Dimension.MULTI_LANGUAGE: (
        (3.0, r"\b(port|translate|convert|rewrite)\b[\w\s]{0,40}\b(to|into|from|in) " + _LANGUAGE_NAMES),
        (2.0, r"\b(bindings?|ffi|cross-language)\b"),
    ),
    Dimension.CODE_COMPLETION: (
        (3.0, r"\b(complete|fill in|finish)\b[\w\s]{0,25}\b(function|method|code|implementation|stub|body)\b"),
        (2.0, r"\bNotImplementedError\b"),
    ),
    Dimension.CODE_GENERATION: (
        (2.0, r"\b(implement|support for|add support|feature request|introduce|would be (nice|useful|great))\b"),
        (1.0, r"\b(add|create|allow|provide|enable)\b"),
    ),
    Dimension.AGENTIC_PROGRAMMING: (
        (2.5, r"\b(migrat(e|ion)|across the (code ?base|repository)|end[- ]to[- ]end)\b"),
        (2.5, r"\bupgrade (all|the|to)\b|\bset ?up (the )?(project|ci|pipeline)\b"),
    ),
}
_RULES = tuple(
    (dimension, points, re.compile(pattern, re.IGNORECASE))
    for dimension, hints in _HINTS.items()
    for points, pattern in hints
)
_TITLE_FACTOR = 2.0
_TRACEBACK_POINTS = 3.0

# All patterns below and above are bounded or anchored: a hostile text must not make them backtrack for minutes.
# Issue templates ask for "expected behaviour" in comments that the writer leaves in: they say nothing of the task.
_HTML_COMMENT = re.compile(r"<!--.*?(?:-->|\Z)", re.DOTALL)
_READ_CHARS = 20_000
_TITLE_CHARS = 1000


def classify(title: str, text: str, *, trigger: str = "") -> Dimension:
    """Return the dimension of a task.

    `trigger` is a word of `store.states.Trigger`, or empty: a failed CI run (`ci`) is a bug whatever its log says.
    """
    if trigger == "ci":
        return Dimension.BUG_FIXING
    title = title[:_TITLE_CHARS]
    body = _HTML_COMMENT.sub(" ", text[:_READ_CHARS])
    points: defaultdict[Dimension, float] = defaultdict(float)
    for dimension, value, pattern in _RULES:
        # One word repeated a hundred times in a log is still one hint.
        points[dimension] += value * (_TITLE_FACTOR * bool(pattern.search(title)) + bool(pattern.search(body)))
    if has_traceback(body) or has_failing_test(body):
        points[Dimension.BUG_FIXING] += _TRACEBACK_POINTS
    best, value = max(points.items(), key=lambda item: item[1])
    if value > 0:
        return best
    return Dimension.BUG_FIXING if trigger in ("label", "command") else Dimension.AGENTIC_PROGRAMMING


def has_traceback(text: str) -> bool:
    """Return whether a text holds a stack trace or an exception's line, as Python, the JVM, Go and Rust write them."""
    return bool(_TRACEBACK.search(text[:_READ_CHARS]))


def has_failing_test(text: str) -> bool:
    """Return whether a text holds what a test runner writes of a test that failed."""
    return bool(_FAILING_TEST.search(text[:_READ_CHARS]))


_LANGUAGES = {
    "py": "python", "pyi": "python", "ipynb": "python", "js": "javascript", "mjs": "javascript", "cjs": "javascript",
    "jsx": "javascript", "ts": "typescript", "tsx": "typescript", "go": "go", "rs": "rust", "java": "java",
    "kt": "kotlin", "kts": "kotlin", "scala": "scala", "c": "c", "h": "c", "cc": "c++", "cpp": "c++", "cxx": "c++",
    "hpp": "c++", "cs": "c#", "rb": "ruby", "php": "php", "swift": "swift", "sh": "shell", "bash": "shell",
    "lua": "lua", "pl": "perl", "r": "r", "jl": "julia", "ex": "elixir", "exs": "elixir", "hs": "haskell",
    "dart": "dart", "sql": "sql", "html": "html", "css": "css",
}  # fmt: skip
_FENCE = re.compile(r"^[ \t]{0,8}(?:```|~~~)[ \t]{0,4}([A-Za-z+#]+)", re.MULTILINE)
_PATH = re.compile(r"(?<![\w./-])[\w./-]{1,200}\.([A-Za-z]{1,5})\b")
_FENCE_POINTS = 3


def detect_language(source: str | Iterable[str]) -> str:
    """Return the language (lower case, `python`, `c++`, ...) of a text, or that of most paths; empty: unknown.

    A text is judged by its fenced code blocks and by the file names it mentions.
    """
    counts: Counter[str] = Counter()
    if isinstance(source, str):
        text = source[:_READ_CHARS]
        for tag in _FENCE.findall(text):
            counts[_language_of(tag.lower())] += _FENCE_POINTS
        for suffix in _PATH.findall(text):
            counts[_LANGUAGES.get(suffix.lower(), "")] += 1
        if "Traceback (most recent call last)" in text:
            counts["python"] += _FENCE_POINTS
    else:
        for path in source:
            counts[_LANGUAGES.get(PurePosixPath(path).suffix.lstrip(".").lower(), "")] += 1
    counts.pop("", None)
    # Of two languages with as many points the first by name: the answer must not depend on the order of files.
    return min(counts, key=lambda language: (-counts[language], language), default="")


def _language_of(tag: str) -> str:
    if tag in _LANGUAGES.values():
        return tag
    return {"python3": "python", "pycon": "python", "golang": "go", "console": "", "csharp": "c#"}.get(
        tag, _LANGUAGES.get(tag, "")
    )
