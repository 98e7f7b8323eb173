"""Measure how much each line of Python code holds, by package.

    python tests/helpers/density.py nmt

Docstrings, comments and blank lines are not code.
"""

import ast
import io
import sys
import tokenize
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import asdict, dataclass, fields
from pathlib import Path

LONGEST_LINE = 100
SPACING = {
    tokenize.COMMENT,
    tokenize.DEDENT,
    tokenize.ENCODING,
    tokenize.ENDMARKER,
    tokenize.INDENT,
    tokenize.NEWLINE,
    tokenize.NL,
}
FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef)
COMPREHENSIONS = (ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp)
DECISIONS = (
    ast.Assert,
    ast.AsyncFor,
    ast.ExceptHandler,
    ast.For,
    ast.If,
    ast.IfExp,
    ast.While,
    ast.match_case,
)
LITERALS = (ast.Tuple, ast.List, ast.Set, ast.Constant, ast.JoinedStr)


@dataclass(frozen=True)
class Density:
    """Upper limits for a package, or what was measured there."""

    tokens: int
    """Per line of code, 90th percentile."""

    long_lines: int
    """Lines of code with more than 100 characters."""

    parallel: float
    """Assignments `a, b = x, y`, other than swaps, in percent of all assignments."""

    nested: float
    """Comprehensions with two loops or with another one inside, per 100 lines of code."""

    unpacked: int
    """Literals that are unpacked at once, such as `*("a", "b")` and `**{"a": 1}`."""

    tricks: int
    """Conditions as numbers, such as `"s" * (count > 1)`, and `:=` outside of a condition."""

    complexity: int
    """The most branches and conditions in a function, plus 1 (McCabe 1976)."""

    longest: int
    """Lines of the longest function."""


GOAL = Density(
    tokens=18,
    long_lines=0,
    parallel=2.0,
    nested=0.2,
    unpacked=0,
    tricks=0,
    complexity=12,
    longest=50,
)


@dataclass
class Totals:
    """What is counted in the files of a package."""

    tokens_of_lines: list[int]
    counts: Counter[str]
    complexity: int = 1
    longest: int = 0

    def add(self, source: str) -> None:
        tree = ast.parse(source)
        self.add_lines(source, tree)
        for node in ast.walk(tree):
            self.add_node(node)

    def add_lines(self, source: str, tree: ast.Module) -> None:
        documentation = docstring_lines(tree)
        tokens = Counter[int]()
        for token in tokenize.generate_tokens(io.StringIO(source).readline):
            if token.type not in SPACING:
                tokens[token.start[0]] += 1
        for number, line in enumerate(source.splitlines(), 1):
            text = line.strip()
            if not text or text.startswith("#") or number in documentation:
                continue
            self.tokens_of_lines.append(tokens[number])
            if len(line) > LONGEST_LINE:
                self.counts["long"] += 1

    def add_node(self, node: ast.AST) -> None:
        if isinstance(node, ast.Assign):
            self.counts["assignments"] += 1
            if is_parallel(node):
                self.counts["parallel"] += 1
        elif isinstance(node, COMPREHENSIONS) and is_nested(node):
            self.counts["nested"] += 1
        elif isinstance(node, FUNCTIONS):
            lines = (node.end_lineno or node.lineno) - node.lineno + 1
            self.longest = max(self.longest, lines)
            self.complexity = max(self.complexity, 1 + sum(decisions(node)))
        self.counts["unpacked"] += unpacked_literals(node)
        self.counts["tricks"] += conditions_as_numbers(node) + inner_assignments(node)

    def density(self) -> Density:
        lines = max(len(self.tokens_of_lines), 1)
        ordered = sorted(self.tokens_of_lines) or [0]
        assignments = max(self.counts["assignments"], 1)
        return Density(
            tokens=ordered[int(0.9 * len(ordered))],
            long_lines=self.counts["long"],
            parallel=round(100 * self.counts["parallel"] / assignments, 1),
            nested=round(100 * self.counts["nested"] / lines, 2),
            unpacked=self.counts["unpacked"],
            tricks=self.counts["tricks"],
            complexity=self.complexity,
            longest=self.longest,
        )


def docstring_lines(tree: ast.Module) -> set[int]:
    """The lines of docstrings, and of the strings that describe attributes."""
    lines: set[int] = set()
    for node in ast.walk(tree):
        if not isinstance(node, ast.Expr) or not isinstance(node.value, ast.Constant):
            continue
        if isinstance(node.value.value, str):
            lines.update(range(node.lineno, (node.end_lineno or node.lineno) + 1))
    return lines


def is_parallel(node: ast.Assign) -> bool:
    rows = (ast.Tuple, ast.List)
    if not isinstance(node.value, rows):
        return False
    before = {ast.unparse(element) for element in node.value.elts}
    for target in node.targets:
        if isinstance(target, rows) and len(target.elts) > 1:
            after = {ast.unparse(element) for element in target.elts}
            return before != after  # equal in a swap
    return False


def is_nested(node: ast.ListComp | ast.SetComp | ast.DictComp | ast.GeneratorExp) -> bool:
    inner = (other for other in ast.walk(node) if other is not node)
    return len(node.generators) > 1 or any(isinstance(other, COMPREHENSIONS) for other in inner)


def decisions(function: ast.AST) -> Iterator[int]:
    """The number of decisions in each statement and expression, without inner functions."""
    for child in ast.iter_child_nodes(function):
        if isinstance(child, (*FUNCTIONS, ast.ClassDef)):
            continue
        if isinstance(child, DECISIONS):
            yield 1
        elif isinstance(child, ast.BoolOp):
            yield len(child.values) - 1
        elif isinstance(child, ast.comprehension):
            yield 1 + len(child.ifs)
        yield from decisions(child)


def unpacked_literals(node: ast.AST) -> int:
    values: list[ast.AST] = []
    mappings: list[ast.AST] = []
    if isinstance(node, ast.ClassDef):
        values += node.bases
    elif isinstance(node, ast.Call):
        values += node.args
        mappings += [keyword.value for keyword in node.keywords if keyword.arg is None]
    elif isinstance(node, ast.Tuple | ast.List | ast.Set):
        values += node.elts
    elif isinstance(node, ast.Dict):
        pairs = zip(node.keys, node.values, strict=True)
        mappings += [value for key, value in pairs if key is None]
    tuples = [
        value
        for value in values
        if isinstance(value, ast.Starred) and isinstance(value.value, LITERALS)
    ]
    dictionaries = [value for value in mappings if isinstance(value, ast.Dict)]
    return len(tuples) + len(dictionaries)


def is_condition(node: ast.AST | None) -> bool:
    if isinstance(node, ast.UnaryOp):
        return isinstance(node.op, ast.Not)
    return isinstance(node, ast.Compare)


def conditions_as_numbers(node: ast.AST) -> int:
    """Conditions that repeat a literal, or that bound a slice."""
    if isinstance(node, ast.Slice):
        return is_condition(node.lower) + is_condition(node.upper)
    if not isinstance(node, ast.BinOp) or not isinstance(node.op, ast.Mult):
        return 0
    if isinstance(node.left, LITERALS):
        return int(is_condition(node.right))
    return int(isinstance(node.right, LITERALS) and is_condition(node.left))


def inner_assignments(node: ast.AST) -> int:
    """The number of `:=` that belong to a statement or a comprehension, but not to its conditions."""
    if isinstance(node, ast.If | ast.While):
        parts: list[ast.AST] = []
    elif isinstance(node, ast.comprehension):
        parts = [node.iter]
    elif isinstance(node, ast.stmt):
        parts = [*ast.iter_child_nodes(node)]
    else:
        return 0
    return sum(map(assignments_in, parts))


def assignments_in(node: ast.AST) -> int:
    # Statements and comprehensions are counted by themselves.
    if isinstance(node, ast.stmt | ast.comprehension):
        return 0
    inner = sum(map(assignments_in, ast.iter_child_nodes(node)))
    return inner + isinstance(node, ast.NamedExpr)


def packages_of(root: Path) -> dict[str, list[Path]]:
    """Package -> its files. Each plugin is a package, and so are the files in `root` itself."""
    packages: dict[str, list[Path]] = {}
    for path in sorted(root.rglob("*.py")):
        folders = path.relative_to(root).parts[:-1]
        depth = 2 if folders[:1] == ("plugins",) else 1
        packages.setdefault("/".join(folders[:depth]) or root.name, []).append(path)
    return packages


def density_of(paths: Iterable[Path]) -> Density:
    totals = Totals([], Counter())
    for path in paths:
        totals.add(path.read_text(encoding="utf-8"))
    return totals.density()


def main() -> None:
    names = [field.name for field in fields(Density)]
    print(f"{'':24}", *(f"{name:>10}" for name in names))
    print(f"{'goal':24}", *(f"{value:>10}" for value in asdict(GOAL).values()))
    for name, paths in packages_of(Path(sys.argv[1])).items():
        print(f"{name:24}", *(f"{value:>10}" for value in asdict(density_of(paths)).values()))


if __name__ == "__main__":
    main()
