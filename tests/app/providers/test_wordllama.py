"""The embedder in this process: it blocks nothing, mixes nothing and stays small."""

import asyncio
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import wordllama

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


async def test_its_vectors_are_those_of_the_package_with_weights_at_full_precision(local: WordLlamaEmbedder):
    folder = Path(wordllama.__file__).parent
    whole = wordllama.WordLlama.load(dim=local.dimension, cache_dir=folder, disable_download=True)
    assert whole.embedding.dtype == np.float32
    texts = [*TEXTS, "ᚠ" * 400, "重启服务 watchdog", "a" * 5_000]
    assert np.array_equal(await local.embed(texts), whole.embed(texts, norm=True, batch_size=1))


@pytest.mark.skipif(sys.platform != "linux", reason="reads the size from /proc")
def test_it_holds_no_copy_of_the_weights():
    program = (
        "import asyncio, pathlib, re, app.providers.wordllama as module\n"
        "resident = lambda: int(re.search(r'VmRSS:\\s+(\\d+)', pathlib.Path('/proc/self/status').read_text())[1])\n"
        "before = resident()\n"
        "asyncio.run(module.WordLlamaEmbedder().embed(['water the garden']))\n"
        "print(resident() - before)\n"
    )
    grown_kib = int(subprocess.check_output([sys.executable, "-c", program], text=True))
    assert grown_kib < 32_000_000 // 1024  # of 32,000 words, 256 numbers at full precision


async def test_closing_it_takes_nothing_away_from_another(local: WordLlamaEmbedder):
    closed = WordLlamaEmbedder()
    await closed.aclose()
    assert_unit(await local.embed(TEXTS), 3, 256)
