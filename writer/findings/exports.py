"""Exports of a source file: its public names, interfaces and classes.

The parser is tree-sitter, which also copes with broken and truncated files. Only the top level of a file is read.
"""

import posixpath
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from functools import cache
from itertools import islice

import tree_sitter_go
import tree_sitter_java
import tree_sitter_javascript
import tree_sitter_python
import tree_sitter_rust
import tree_sitter_typescript
from tree_sitter import Language, Node, Parser

PARSED_BYTES = 128 * 1024
"""Bytes at the beginning of a file that are parsed, which takes about 50 ms."""
MOST_NAMES = 60
LONGEST_NAME = 200

Offers = Iterator[tuple[str, str]]
"""Pairs of a group ("names", "interfaces" or "classes") and an exported name."""


@dataclass(frozen=True, slots=True)
class Exports:
    """Exports of a file, each group in the order of the file, together at most MOST_NAMES."""

    names: list[str] = field(default_factory=list)
    interfaces: list[str] = field(default_factory=list)
    classes: list[str] = field(default_factory=list)

    def as_dict(self) -> dict[str, list[str]]:
        """Returns the groups of exports that are not empty, as JSON values."""
        groups = {"names": self.names, "interfaces": self.interfaces, "classes": self.classes}
        return {kind: names for kind, names in groups.items() if names}


@dataclass(frozen=True, slots=True)
class _Grammar:
    """A language: its tree-sitter grammar, and the function that reads the exports off a syntax tree."""

    language: Callable[[], object]
    offers: Callable[[Node], Offers]


def exports(path: str, text: str) -> Exports | None:
    """Returns the exports of a file, or None if its suffix belongs to no supported language."""
    grammar = _GRAMMARS.get(posixpath.splitext(path)[1].lower())
    if grammar is None:
        return None
    tree = _parser(grammar.language).parse(text[:PARSED_BYTES].encode("utf-8", "replace"))
    result = Exports()
    for kind, name in islice(dict.fromkeys(grammar.offers(tree.root_node)), MOST_NAMES):
        getattr(result, kind).append(name[:LONGEST_NAME])
    return result


@cache
def _parser(language: Callable[[], object]) -> Parser:
    return Parser(Language(language()))


def _text(node: Node | None) -> str:
    return "" if node is None or node.text is None else node.text.decode("utf-8", "replace")


def _name(node: Node) -> str:
    return _text(node.child_by_field_name("name"))


def _top(root: Node) -> Iterator[Node]:
    """Yields the top-level nodes of a file, those inside syntax errors included."""
    for node in root.named_children:
        if node.type == "ERROR":
            yield from node.named_children
        else:
            yield node


def _python(root: Node) -> Offers:
    for node in _top(root):
        inner = node.child_by_field_name("definition") if node.type == "decorated_definition" else node
        if inner is None:
            continue
        if inner.type in {"class_definition", "function_definition"}:
            name = _name(inner)
        else:  # an assignment to one name
            first = inner.named_children[0] if inner.type == "expression_statement" and inner.named_children else None
            left = first.child_by_field_name("left") if first is not None and first.type == "assignment" else None
            name = _text(left) if left is not None and left.type == "identifier" else ""
        if name and not name.startswith("_"):
            yield "classes" if inner.type == "class_definition" else "names", name


_SCRIPT_CLASSES = {"class_declaration", "abstract_class_declaration", "class"}
_SCRIPT_NAMED = {
    "function_declaration",
    "generator_function_declaration",
    "function_signature",
    "enum_declaration",
    "type_alias_declaration",
    "internal_module",
    "module",
}


def _script(root: Node) -> Offers:
    """Yields the exports of a JavaScript or TypeScript file, and all its classes and interfaces."""
    for node in _top(root):
        if node.type == "export_statement":
            yield from _exported(node)
        elif node.type in _SCRIPT_CLASSES or node.type == "interface_declaration":
            yield from _declared(node)
        elif node.type == "expression_statement":
            yield from _common(node)


def _exported(node: Node) -> Offers:
    declaration = node.child_by_field_name("declaration")
    if declaration is not None:
        yield from _declared(declaration)
    elif any(child.type == "default" for child in node.children):
        yield "names", "default"
    for clause in node.named_children:
        for specifier in clause.named_children if clause.type == "export_clause" else ():
            yield "names", _text(specifier.child_by_field_name("alias")) or _name(specifier)


def _declared(node: Node) -> Offers:
    if node.type in _SCRIPT_CLASSES:
        yield "classes", _name(node)
    elif node.type == "interface_declaration":
        yield "interfaces", _name(node)
    elif node.type in _SCRIPT_NAMED:
        yield "names", _name(node)
    elif node.type == "ambient_declaration":
        for child in node.named_children:
            yield from _declared(child)
    else:
        for child in node.named_children:
            if child.type == "variable_declarator":
                yield "names", _name(child)


def _common(node: Node) -> Offers:
    """Yields the names that a statement assigns to ``module.exports`` or ``exports``."""
    first = node.named_children[0] if node.named_children else None
    if first is None or first.type != "assignment_expression":
        return
    left, right = _text(first.child_by_field_name("left")), first.child_by_field_name("right")
    if left == "module.exports" and right is not None and right.type == "object":
        for pair in right.named_children:
            yield "names", _text(pair.child_by_field_name("key")) or _text(pair)
    elif left.startswith(("exports.", "module.exports.")):
        yield "names", left.rpartition(".")[2]


def _go(root: Node) -> Offers:
    for node in _top(root):
        if node.type in {"function_declaration", "method_declaration"}:
            offers = [("names", _name(node))]
        else:
            offers = []
            for spec in _specs(node):
                kind = spec.child_by_field_name("type") if spec.type == "type_spec" else None
                groups = {"interface_type": "interfaces", "struct_type": "classes"}
                offers.append((groups.get(kind.type, "names") if kind is not None else "names", _name(spec)))
        yield from (offer for offer in offers if offer[1][:1].isupper())


def _specs(node: Node) -> Iterator[Node]:
    for child in node.named_children:
        if child.type in {"type_spec", "type_alias", "const_spec", "var_spec"}:
            yield child
        elif child.type == "var_spec_list":
            yield from _specs(child)


_RUST = {
    "struct_item": "classes",
    "enum_item": "classes",
    "union_item": "classes",
    "trait_item": "interfaces",
    "function_item": "names",
    "type_item": "names",
    "const_item": "names",
    "static_item": "names",
    "mod_item": "names",
    "function_signature_item": "names",
}


def _rust(root: Node) -> Offers:
    for node in _top(root):
        is_public = any(child.type == "visibility_modifier" for child in node.children)
        if is_public and node.type in _RUST:
            yield _RUST[node.type], _name(node)
        elif node.type == "macro_definition":
            yield "names", f"{_name(node)}!"


_JAVA = {
    "class_declaration": "classes",
    "record_declaration": "classes",
    "enum_declaration": "classes",
    "interface_declaration": "interfaces",
    "annotation_type_declaration": "interfaces",
}


def _java(root: Node) -> Offers:
    """Yields the types of a file, and the public methods of each."""
    for node in _top(root):
        if node.type not in _JAVA:
            continue
        yield _JAVA[node.type], _name(node)
        body = node.child_by_field_name("body")
        of_interface = node.type == "interface_declaration"
        for member in body.named_children if body is not None else ():
            modifiers = next((child for child in member.named_children if child.type == "modifiers"), None)
            if member.type == "method_declaration" and (of_interface or "public" in _text(modifiers).split()):
                yield "names", _name(member)


_SCRIPT = _Grammar(tree_sitter_javascript.language, _script)
_TYPED = _Grammar(tree_sitter_typescript.language_typescript, _script)
_GRAMMARS = {
    ".py": _Grammar(tree_sitter_python.language, _python),
    ".pyi": _Grammar(tree_sitter_python.language, _python),
    **dict.fromkeys((".js", ".mjs", ".cjs", ".jsx"), _SCRIPT),
    **dict.fromkeys((".ts", ".mts", ".cts"), _TYPED),
    ".tsx": _Grammar(tree_sitter_typescript.language_tsx, _script),
    ".go": _Grammar(tree_sitter_go.language, _go),
    ".rs": _Grammar(tree_sitter_rust.language, _rust),
    ".java": _Grammar(tree_sitter_java.language, _java),
}
"""Grammars by the suffix of a file's name."""
