"""Patches as git writes them."""

SHA = "0123456789abcdef0123456789abcdef01234567"


def change(
    path: str, *, removed: list[str] | None = None, added: list[str] | None = None, header: str | None = None
) -> str:
    """Return a modification of one line in context, as git writes it."""
    removed, added = removed or ["old"], added or ["new"]
    lines = [
        f"diff --git a/{path} b/{path}",
        f"index {SHA}..{SHA[::-1]} 100644" if header is None else header,
        f"--- a/{path}",
        f"+++ b/{path}",
        f"@@ -1,{len(removed)} +1,{len(added)} @@",
        *(f"-{line}" for line in removed),
        *(f"+{line}" for line in added),
    ]
    return "\n".join(lines) + "\n"


def new(path: str, added: list[str], mode: str = "100644") -> str:
    lines = [
        f"diff --git a/{path} b/{path}",
        f"new file mode {mode}",
        f"index {'0' * 40}..{SHA}",
        "--- /dev/null",
        f"+++ b/{path}",
        f"@@ -0,0 +1,{len(added)} @@",
        *(f"+{line}" for line in added),
    ]
    return "\n".join(lines) + "\n"
