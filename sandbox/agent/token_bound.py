"""How many tokens a text can have at most, whatever the model's tokenizer: for money that is reserved before a call.

A token of the byte-pair encodings in use is a piece of a word, a run of digits, a mark or a part of a rare character,
and never less than a byte. So each digit, blank before one, mark, line end and byte of another script counts as one,
and so does each byte of a long run of letters and digits (base64, hashes); words count one for each four letters of
one case. On prose and code this is up to twice the truth; on digits and other scripts up to four times. Words of fewer
than 16 random lower-case letters can have more: there the bound is a half to two thirds of the truth, and
`sandbox.agent.usage` takes a tokenizer's count where that is higher. The test measures it with the tokenizers that
LiteLLM carries.
"""

import math
import re

_PIECES = re.compile(rb"A?a{1,4}|A{1,2}(?!a)| {2,8}")
_LONG_RUNS = re.compile(rb"[aA1]{16,}")
_MARGIN = 1.15
"""Other tokenizers than those that were measured make more of the same text."""


def _kind(byte: int) -> str:
    if byte >= 128:
        return "x"
    character = chr(byte)
    if character.isalpha():
        return "a" if character.islower() else "A"
    return "1" if character.isdigit() else " " if character in " \t" else "."


_KINDS = "".join(map(_kind, range(256))).encode()
"""The kind of each byte: a letter by its case, a digit, a blank, a mark or line end, or what is not ASCII."""


def most_tokens(text: str) -> int:
    """Return a number of tokens that a text hardly ever passes, unless its words are random letters."""
    kinds = text.encode("utf-8", "replace").translate(_KINDS)
    runs = sum(map(len, _LONG_RUNS.findall(kinds)))
    rest = _LONG_RUNS.sub(b"", kinds)
    singles = sum(rest.count(kind) for kind in (b"1", b" 1", b".", b"x"))
    return math.ceil(_MARGIN * (runs + singles + len(_PIECES.findall(rest))))
