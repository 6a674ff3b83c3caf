"""Embeddings computed in this process by a static model of 16 MB: no server, no key, no torch."""

import asyncio
import json
from collections.abc import Sequence
from functools import cache
from importlib.util import find_spec
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from tokenizers import Tokenizer

from retrieval.ports import Vectors, embedder_inputs

MAX_CHARS = 8_192
"""Characters of a text that are embedded: 3 ms for English, and at worst 70 ms and 50 MB for a rare script."""

INLINE_TEXTS = 16
INLINE_CHARS = 4_096
"""Largest batch, in texts and characters, that is embedded on the event loop, in about 2 ms; a thread takes others."""


class WordLlamaEmbedder:
    """Embeds with the weights inside the wordllama package; about 25 MB resident beyond numpy, 80 µs a text."""

    model = "wordllama-l2-supercat-256"
    dimension = 256

    def __init__(self) -> None:
        self._tokenizer, self._weights = _model(self.dimension)

    async def embed(self, texts: Sequence[str]) -> Vectors:
        """Returns the texts' unit vectors, (len(texts), 256), each of the first `MAX_CHARS` of its text.

        Raises:
            TextNotEmbeddable: some texts are blank.
        """
        inputs = embedder_inputs(texts, MAX_CHARS)
        if len(inputs) <= INLINE_TEXTS and sum(map(len, inputs)) <= INLINE_CHARS:
            return self.vectors(inputs)
        return await asyncio.to_thread(self.vectors, inputs)

    async def aclose(self) -> None:
        """Keeps the weights, which all embedders of the process share."""

    def vectors(self, inputs: list[str]) -> Vectors:
        """Returns the unit vectors of texts that are neither blank nor long, in the caller's thread."""
        rows = np.zeros((len(inputs), self.dimension), np.float32)
        for row, text in zip(rows, inputs, strict=True):
            tokens = np.array(self._tokenizer.encode(text, add_special_tokens=False).ids, np.int32)
            known = np.minimum(tokens, len(self._weights) - 1)
            row[:] = self._weights[known].sum(axis=0, dtype=np.float32) / np.float32(max(len(tokens), 1))
        unit: Vectors = rows / np.linalg.norm(rows, axis=1, keepdims=True)
        return unit


@cache
def _model(dimension: int) -> tuple[Tokenizer, NDArray[np.float16]]:
    """Reads the tokenizer and maps the weights, once in a process.

    The weights stay in their file, at half precision, so that a process holds the rows of the words that it has met.
    The package itself, which is not imported, holds 33 MB of them at full precision; the vectors are the same.
    """
    package = find_spec("wordllama")
    if package is None or package.origin is None:
        raise ModuleNotFoundError("wordllama")
    folder = Path(package.origin).parent
    tokenizer = Tokenizer.from_file(str(folder / "tokenizers" / "l2_supercat_tokenizer_config.json"))
    tokenizer.no_truncation()
    tokenizer.no_padding()
    return tokenizer, _mapped(folder / "weights" / f"l2_supercat_{dimension}.safetensors")


def _mapped(file: Path) -> NDArray[np.float16]:
    """Returns the only array of a safetensors file: the length of a JSON header, the header, then the numbers."""
    with file.open("rb") as opened:
        length = int.from_bytes(opened.read(8), "little")
        (array,) = (each for name, each in json.loads(opened.read(length)).items() if name != "__metadata__")
    begins = 8 + length + array["data_offsets"][0]
    return np.asarray(np.memmap(file, np.float16, "r", begins, tuple(array["shape"])))
