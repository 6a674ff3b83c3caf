"""JavaScript of the n8n workflows, run by Node: expressions, and the code of Code nodes."""

import json
import shutil
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import pytest

_PROGRAM = """
const lines = require('readline').createInterface({ input: process.stdin });
lines.on('line', (line) => {
  const { code, said, names } = JSON.parse(line);
  const $ = (name) => ({ first: () => ({ json: said[name] }) });
  const $now = { toMillis: () => Date.now() };
  try {
    const value = new Function('$', '$now', ...Object.keys(names), code)($, $now, ...Object.values(names));
    console.log(JSON.stringify({ value: value === undefined ? null : value }));
  } catch (error) {
    console.log(JSON.stringify({ error: String(error) }));
  }
});
"""


@dataclass(frozen=True)
class JavaScript:
    """A process that runs what it is given, one piece after the other."""

    process: subprocess.Popen[str]

    def run(self, code: str, said: dict[str, Any], **names: Any) -> Any:
        """Returns what the body of a function returns; ``said`` is what ``$('a node').first().json`` reads."""
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        given = {"code": code, "said": said, "names": {f"${name}": value for name, value in names.items()}}
        self.process.stdin.write(json.dumps(given) + "\n")
        self.process.stdin.flush()
        answer = json.loads(self.process.stdout.readline())
        assert "error" not in answer, f"{answer['error']}: {code}"
        return answer["value"]


@contextmanager
def javascript() -> Iterator[JavaScript]:
    """Starts Node, or skips the test where it is not installed."""
    node = shutil.which("node")
    if node is None:
        pytest.skip("the JavaScript of the workflows was not run: node is not installed")
    with subprocess.Popen([node, "-e", _PROGRAM], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        yield JavaScript(process)
        process.kill()
