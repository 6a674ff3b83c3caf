"""What a source file offers to others: its exported names, interfaces and classes, as a parser sees them.

The parser is tree-sitter, which makes something of broken and cut files as well; its grammars are packages of their
own. Only what stands at the top of a file is looked at.
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
"""Of a file, from its beginning, that are looked at: some 50 ms."""
MOST_NAMES = 60
LONGEST_NAME = 200

Offers = Iterator[tuple[str, str]]
"""Of each thing that is offered, what it is (names, interfaces or classes), and its name."""


@dataclass(frozen=True, slots=True)
class Exports:
    """What a file offers, each in the order of the file, at most MOST_NAMES in all."""

    names: list[str] = field(default_factory=list)
    interfaces: list[str] = field(default_factory=list)
    classes: list[str] = field(default_factory=list)

    def as_dict(self) -> dict[str, list[str]]:
        """Returns what there is as JSON values."""
        found = {"names": self.names, "interfaces": self.interfaces, "classes": self.classes}
        return {kind: names for kind, names in found.items() if names}


@dataclass(frozen=True, slots=True)
class _Grammar:
    """A language: where its grammar comes from, and who reads off what a file of it offers."""

    language: Callable[[], object]
    offers: Callable[[Node], Offers]


def exports(path: str, text: str) -> Exports | None:
    """Returns what the file offers; None of a file in no language that is known here."""
    grammar = _GRAMMARS.get(posixpath.splitext(path)[1].lower())
    if grammar is None:
        return None
    tree = _parser(grammar.language).parse(text[:PARSED_BYTES].encode("utf-8", "replace"))
    found = Exports()
    for kind, name in islice(dict.fromkeys(grammar.offers(tree.root_node)), MOST_NAMES):
        getattr(found, kind).append(name[:LONGEST_NAME])
    return found


@cache
def _parser(language: Callable[[], object]) -> Parser:
    return Parser(Language(language()))


def _said(node: Node | None) -> str:
    return "" if node is None or node.text is None else node.text.decode("utf-8", "replace")


def _name(node: Node) -> str:
    return _said(node.child_by_field_name("name"))


def _top(root: Node) -> Iterator[Node]:
    """Yields what stands at the top, and in broken places there."""
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
        if inner.type == "class_definition":
            found = "classes", _name(inner)
        elif inner.type == "function_definition":
            found = "names", _name(inner)
        else:
            found = "names", _assigned(inner)
        if found[1] and not found[1].startswith("_"):
            yield found


def _assigned(node: Node) -> str:
    """Returns the one name that a statement gives a value."""
    first = node.named_children[0] if node.type == "expression_statement" and node.named_children else None
    left = first.child_by_field_name("left") if first is not None and first.type == "assignment" else None
    return _said(left) if left is not None and left.type == "identifier" else ""


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
    """Yields what a JavaScript or TypeScript file exports, and its classes and interfaces besides."""
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
            yield "names", _said(specifier.child_by_field_name("alias")) or _name(specifier)


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
    """Yields what ``module.exports`` and ``exports`` are given."""
    first = node.named_children[0] if node.named_children else None
    if first is None or first.type != "assignment_expression":
        return
    left, right = _said(first.child_by_field_name("left")), first.child_by_field_name("right")
    if left == "module.exports" and right is not None and right.type == "object":
        for pair in right.named_children:
            yield "names", _said(pair.child_by_field_name("key")) or _said(pair)
    elif left.startswith(("exports.", "module.exports.")):
        yield "names", left.rpartition(".")[2]


def _go(root: Node) -> Offers:
    for node in _top(root):
        if node.type in {"function_declaration", "method_declaration"}:
            found = [("names", _name(node))]
        else:
            found = [_go_spec(spec) for spec in _specs(node)]
        yield from (each for each in found if each[1][:1].isupper())


def _specs(node: Node) -> Iterator[Node]:
    for child in node.named_children:
        if child.type in {"type_spec", "type_alias", "const_spec", "var_spec"}:
            yield child
        elif child.type == "var_spec_list":
            yield from _specs(child)


def _go_spec(spec: Node) -> tuple[str, str]:
    kind = spec.child_by_field_name("type")
    if spec.type == "type_spec" and kind is not None:
        if kind.type == "interface_type":
            return "interfaces", _name(spec)
        return ("classes" if kind.type == "struct_type" else "names"), _name(spec)
    return "names", _name(spec)


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
            if member.type == "method_declaration" and (of_interface or "public" in _modifiers(member)):
                yield "names", _name(member)


def _modifiers(node: Node) -> list[str]:
    found = next((child for child in node.named_children if child.type == "modifiers"), None)
    return _said(found).split()


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
"""By the end of a file's name."""
