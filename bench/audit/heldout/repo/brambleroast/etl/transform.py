"""Cleaning of partner rows before the load."""
import ast
import operator

OPERATORS = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
}


class Formula:
    """Sums and products of numbers and named columns."""

    def __init__(self, text):
        self.root = ast.parse(text, mode="eval").body

    def eval(self, row):
        return self._value(self.root, row)

    def _value(self, node, row):
        if isinstance(node, ast.Constant) and isinstance(node.value, (int, float)):
            return node.value
        if isinstance(node, ast.Name):
            return row[node.id]
        if isinstance(node, ast.BinOp) and type(node.op) in OPERATORS:
            return OPERATORS[type(node.op)](self._value(node.left, row), self._value(node.right, row))
        raise ValueError("not allowed in a formula: " + type(node).__name__)


def add_revenue(rows, formula):
    compiled = Formula(formula)
    for row in rows:
        row["revenue_cents"] = compiled.eval(row)
    return rows


def parse_tags(field):
    """Tags arrive as a Python list literal in one CSV field."""
    if not field:
        return []
    value = ast.literal_eval(field)
    return [str(tag) for tag in value]


def apply_rules(rows, rules):
    """Keep the rows for which the partner's `keep` expression holds."""
    keep = rules.get("keep")
    if not keep:
        return rows
    return [row for row in rows if eval(keep, {}, dict(row))]
