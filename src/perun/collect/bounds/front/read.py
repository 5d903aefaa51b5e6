"""Reading a source file."""

from __future__ import annotations

import os
import subprocess

from pycparser import c_ast, c_parser

from .unit import Function, Loop, ReadOptions, Unit

_SHIMS = [
    "__attribute__(x)=", "__extension__=", "__restrict=", "__inline=inline", "__asm__(x)=", "__const=const",
    "__builtin_va_list=int", "_Float128=double",
]  # fmt: skip


def read(path: str, options: ReadOptions) -> Unit:
    """The functions, loops and declarations of a source file."""
    command = ["gcc", "-E", *(f"-I{one}" for one in options.include), *(f"-D{one}" for one in options.define)]
    command += [f"-D{one}" for one in _SHIMS]
    text = subprocess.run([*command, path], capture_output=True, text=True, check=True).stdout
    tree = c_parser.CParser().parse("typedef int TList; void *NULL; int NONDET;\n# 1\n" + text, path)
    unit = Unit(path)
    functions = []
    for node in tree.ext:
        if isinstance(node, c_ast.FuncDef):
            line, column = node.decl.coord.line - 1, (node.decl.coord.column or 1) - 1
            loops = tuple(_loops(node.body))
            functions.append(Function(node.decl.name, path, line, column, node, loops))
        elif isinstance(node, c_ast.Typedef):
            unit.typedefs[node.name] = node
        elif isinstance(node, c_ast.Decl) and isinstance(node.type, c_ast.FuncDecl):
            unit.prototypes[node.name] = node
        elif isinstance(node, c_ast.Decl) and node.name:
            unit.globals[node.name] = node
        if isinstance(node, c_ast.Decl) and isinstance(node.type, c_ast.Struct) and node.type.decls:
            unit.structs[node.type.name] = node.type
    return Unit(path, tuple(functions), globals=unit.globals, prototypes=unit.prototypes,
                typedefs=unit.typedefs, structs=unit.structs)  # fmt: skip


def _loops(node: c_ast.Node) -> list[Loop]:
    found = []
    if isinstance(node, (c_ast.For, c_ast.While, c_ast.DoWhile)):
        lines = [node.coord.line]
        _lines(node, lines)
        found.append(Loop(node, node.coord.line, max(lines) + 1, (node.coord.column or 1) - 1))
    for _, child in node.children():
        found += _loops(child)
    return found


def _lines(node: c_ast.Node, lines: list[int]) -> None:
    for _, child in node.children():
        if child.coord:
            lines.append(child.coord.line)
        _lines(child, lines)
