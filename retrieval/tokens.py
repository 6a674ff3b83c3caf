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
    return whole_tokens(hundredths(text))


def whole_tokens(count: int) -> int:
    """Returns the number of tokens for so many hundredths of a token; a part counts as a token."""
    return -(-count // 100)


def hundredths(text: str) -> int:
    """Returns the estimate in hundredths of a token; that of several whole lines is the sum of the lines'."""
    kinds = text.encode(errors="surrogatepass").translate(_KINDS)
    count = kinds.count
    digits, marks = count(b"0"), count(b".")
    estimate = 29 * (count(b"a") + count(b"A")) + 140 * count(b"aA") + 120 * count(b"n")
    estimate += 49 * marks + 22 * (marks - count(b".."))  # the second term: pairs of marks
    if digits:
        estimate += 105 * (digits - count(b"00"))
        estimate += 21 * (count(b"0a") + count(b"a0") + count(b"0A") + count(b"A0"))
    if not text.isascii():
        estimate += 160 * count(b"L") + 100 * count(b"2") + 132 * count(b"3") + 250 * count(b"4")
    return estimate
