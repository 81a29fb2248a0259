"""Arithmetic without names and function calls."""
import ast
import json
import operator

SIGNS = {ast.Add: operator.add, ast.Sub: operator.sub, ast.Mult: operator.mul, ast.Div: operator.truediv, ast.Pow: operator.pow}


def value(node):
    if isinstance(node, ast.BinOp):
        return SIGNS[type(node.op)](value(node.left), value(node.right))
    return node.value


def calculate(args, **more):
    try:
        return json.dumps({"result": value(ast.parse(args["sum"], mode="eval").body)})
    except Exception as error:
        return json.dumps({"error": str(error)})
