"""What a file offers, in each language that is known; and what is no help is no harm."""

import pytest

from writer.findings.exports import MOST_NAMES, PARSED_BYTES, exports

PYTHON = '''
"""A module."""
import os
LIMIT: int = 3
_hidden = 1
@dataclass
class Case(Base):
    def method(self): ...
class _Own: ...
async def retain(run): return os
def _own(): ...
'''
TYPESCRIPT = """
import { x } from './x';
export interface Slate { id: string }
export type Id = string;
export abstract class Reader<T> implements Slate { read(): void {} }
export const LIMIT = 3, OTHER = 4;
export async function retrieve(q: string) { return q; }
export enum Arm { A }
export { x as again, y };
export default class Main {}
class Hidden {}
function own() {}
"""
JAVASCRIPT = """
export default function () {}
export class Bank {}
module.exports = { retain, retrieve: find };
exports.extra = () => 1;
const own = 2;
"""
GO = """
package bank
type Reader interface { Read() error }
type Case struct { ID string }
type Rank int
const (
    Limit = 3
    own = 4
)
var Default = 1
func Retain(c Case) error { return nil }
func (c *Case) Open() {}
func hidden() {}
"""
RUST = """
use std::fmt;
pub struct Case { id: u8 }
pub(crate) enum Arm { A }
pub trait Reader { fn read(&self); }
pub fn retain(c: Case) {}
fn own() {}
pub const LIMIT: u8 = 3;
pub mod inner { }
#[macro_export]
macro_rules! check { () => {} }
impl Case { pub fn open(&self) {} }
"""
JAVA = """
package bank;
public interface Reader { void read(); }
public class Bank implements Reader {
    public void read() {}
    private void own() {}
    public static int count() { return 1; }
}
record Case(String id) {}
enum Arm { A }
"""


@pytest.mark.parametrize(
    ("path", "text", "found"),
    [
        ("a/case.py", PYTHON, {"names": ["LIMIT", "retain"], "classes": ["Case"]}),
        (
            "slate.ts",
            TYPESCRIPT,
            {
                "names": ["Id", "LIMIT", "OTHER", "retrieve", "Arm", "again", "y"],
                "interfaces": ["Slate"],
                "classes": ["Reader", "Main", "Hidden"],
            },
        ),
        ("bank.js", JAVASCRIPT, {"names": ["default", "retain", "retrieve", "extra"], "classes": ["Bank"]}),
        (
            "bank.go",
            GO,
            {"names": ["Rank", "Limit", "Default", "Retain", "Open"], "interfaces": ["Reader"], "classes": ["Case"]},
        ),
        (
            "lib.rs",
            RUST,
            {"names": ["retain", "LIMIT", "inner", "check!"], "interfaces": ["Reader"], "classes": ["Case", "Arm"]},
        ),
        ("Bank.java", JAVA, {"names": ["read", "count"], "interfaces": ["Reader"], "classes": ["Bank", "Case", "Arm"]}),
        ("view.tsx", "export const View = () => <div>{1}</div>;", {"names": ["View"]}),
        ("types.d.ts", "export declare function ask(q: string): void;", {"names": ["ask"]}),
    ],
)
def test_what_a_file_offers_is_read_off_in_each_language(path: str, text: str, found: dict[str, list[str]]):
    assert exports(path, text) == found


@pytest.mark.parametrize(
    ("path", "text", "found"),
    [
        (
            "a.py",
            'of a sentence.\n    """\n    return (1,\n\nclass Case:\n    pass\n\ndef retain(run):\n    return run\n',
            {"names": ["retain"], "classes": ["Case"]},
        ),
        (
            "Bank.java",
            "        return 1;\n    }\n\n    public void read() {\n        open(1);\n    }\n\n    int own() {\n",
            {"names": ["read"]},
        ),
        ("lib.rs", 'push("}");\n    }\n}\n\npub fn retain(c: Case) {\n', {"names": ["retain"]}),
    ],
)
def test_a_part_of_a_file_offers_what_it_declares(path: str, text: str, found: dict[str, list[str]]):
    assert exports(path, text) == found


def test_a_file_in_no_known_language_is_not_parsed():
    assert exports("notes.md", "# class Case") == {}
    assert exports("Makefile", "class: x") == {}


@pytest.mark.parametrize(
    "text", ["", "\x00\x01\x02" * 1_000, "(" * 300_000, "class ", "\ud800", "def f(:\nclass Case:"]
)
@pytest.mark.parametrize("path", ["a.py", "a.ts", "a.js", "a.go", "a.rs", "a.java"])
def test_no_text_breaks_the_parser(path: str, text: str):
    assert exports(path, text).keys() <= {"names", "interfaces", "classes"}


def test_a_cut_file_still_offers_what_is_whole():
    offered = exports("a.py", "class Case:\n    pass\n\ndef retain(run):\n    return {'a': [1,")
    assert "Case" in offered["classes"]


def test_no_more_is_kept_than_a_prompt_could_hold():
    offered = exports("a.py", "\n".join(f"def name_{number}(): ..." for number in range(500)))
    assert len(offered["names"]) == MOST_NAMES
    assert exports("a.py", "#" * PARSED_BYTES + "\nclass Late: ...") == {}
