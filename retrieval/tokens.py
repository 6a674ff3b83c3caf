"""Estimates how many tokens a text has, from the kinds of its characters, without a tokenizer.

The weights were fitted to three tokenizers, OpenAI's o200k_base and cl100k_base and the one that Anthropic published,
over prose, code, JSON, ids and other scripts. The aim was the largest of the three counts, because a text that exceeds
its budget is worse than one that leaves some of it unused.
"""


def _kind(byte: int) -> str:
    """Returns the kind of a byte of UTF-8 as one character; "-" for a byte after the first of a character."""
    leads = ((0xF0, "4"), (0xE0, "3"), (0xCA, "2"), (0xC0, "L"), (0x80, "-"))  # "L": letters of Latin scripts
    if lead := next((kind for first, kind in leads if byte >= first), ""):
        return lead
    char = chr(byte)
    if char.isalpha():
        return "A" if char.isupper() else "a"
    return "0" if char.isdigit() else "n" if char == "\n" else " " if char.isspace() else "."


_KINDS = "".join(map(_kind, range(256))).encode()


def count_tokens(text: str) -> int:
    """Returns the estimated number of tokens of a text, at most 10 % below the count of each of the three tokenizers.

    `tests/retrieval/data/token_counts.json` holds texts with the tokenizers' counts.
    """
    kinds = text.encode(errors="surrogatepass").translate(_KINDS)
    count = kinds.count
    digits, marks = count(b"0"), count(b".")
    tokens = 0.29 * (count(b"a") + count(b"A")) + 1.4 * count(b"aA") + 1.2 * count(b"n")
    tokens += 0.49 * marks + 0.22 * (marks - count(b".."))  # the second term: pairs of marks
    if digits:
        tokens += 1.05 * (digits - count(b"00"))
        tokens += 0.21 * (count(b"0a") + count(b"a0") + count(b"0A") + count(b"A0"))
    if not text.isascii():
        tokens += 1.6 * count(b"L") + count(b"2") + 1.32 * count(b"3") + 2.5 * count(b"4")
    return -int(-tokens // 1)
