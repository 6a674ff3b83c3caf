"""The embedder in this process: it blocks nothing, mixes nothing and stays small."""

import asyncio
import subprocess
import sys

import numpy as np
import pytest

from app.providers.wordllama import WordLlamaEmbedder
from tests.app.providers.conftest import TEXTS, assert_unit


async def test_a_big_batch_does_not_block_the_event_loop(local: WordLlamaEmbedder):
    embedding = asyncio.create_task(local.embed(["a sentence of ordinary length about nothing"] * 5_000))
    turns = 0
    while not embedding.done():
        await asyncio.sleep(0.001)
        turns += 1
    assert turns > 10
    assert_unit(await embedding, 5_000, 256)


async def test_concurrent_batches_do_not_mix(local: WordLlamaEmbedder):
    batches = [[f"task {i} {j}" for j in range(40)] for i in range(8)]
    together = await asyncio.gather(*map(local.embed, batches))
    for batch, rows in zip(batches, together, strict=True):
        assert np.array_equal(rows, await local.embed(batch))


@pytest.mark.skipif(sys.platform != "linux", reason="reads the peak from /proc")
def test_serving_imports_no_torch_and_its_peak_stays_small():
    program = (
        "import asyncio, pathlib, re, sys\n"
        "from app.providers.wordllama import WordLlamaEmbedder\n"
        "asyncio.run(WordLlamaEmbedder().embed(['ᚠ' * 9000] * 16))\n"
        "peak = re.search(r'VmHWM:\\s+(\\d+) kB', pathlib.Path('/proc/self/status').read_text())[1]\n"
        "print('torch' in sys.modules, int(peak) // 1024)\n"
    )
    torch, peak_mib = subprocess.check_output([sys.executable, "-c", program], text=True).split()
    assert torch == "False"
    assert int(peak_mib) < 250


async def test_closing_it_takes_nothing_away_from_another(local: WordLlamaEmbedder):
    closed = WordLlamaEmbedder()
    await closed.aclose()
    assert_unit(await local.embed(TEXTS), 3, 256)
