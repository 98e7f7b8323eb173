"""Run a notebook without Jupyter, or convert it to Markdown; `python docs/notebook.py FILE` stores its outputs."""

import ast
import base64
import io
import json
import sys
from contextlib import chdir, redirect_stderr, redirect_stdout
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

Notebook = dict[str, Any]


def code_cells(notebook: Notebook) -> list[dict[str, Any]]:
    return [cell for cell in notebook["cells"] if cell["cell_type"] == "code"]


def statements_of(cell: dict[str, Any]) -> list[ast.stmt]:
    """The Python of a cell, without magics such as `%pip install`, which only Jupyter needs."""
    lines = ["\n" if line.startswith("%") else line for line in cell["source"]]
    return ast.parse("".join(lines)).body


def picture_of(value: Any) -> dict[str, str]:
    """A figure of matplotlib as Jupyter stores it; empty for any other value."""
    if not hasattr(value, "savefig"):
        return {}
    content = io.BytesIO()
    # Without metadata, which names the version of matplotlib.
    value.savefig(content, format="png", metadata={"Software": None})
    return {"image/png": base64.b64encode(content.getvalue()).decode()}


def run(notebook: Notebook) -> Notebook:
    """Execute the code cells in one namespace, in the working directory, and replace their outputs."""
    names: dict[str, Any] = {"__name__": "__main__"}
    for number, cell in enumerate(code_cells(notebook), 1):
        statements = statements_of(cell)
        is_value = bool(statements) and isinstance(statements[-1], ast.Expr)
        last = statements.pop() if is_value else None
        printed, logged, value = io.StringIO(), io.StringIO(), None
        with redirect_stdout(printed), redirect_stderr(logged):
            exec(compile(ast.Module(statements, []), f"cell {number}", "exec"), names)
            if isinstance(last, ast.Expr):
                value = eval(compile(ast.Expression(last.value), f"cell {number}", "eval"), names)
        streams = {"stderr": logged.getvalue(), "stdout": printed.getvalue()}
        cell["outputs"] = [
            {"output_type": "stream", "name": name, "text": text.splitlines(keepends=True)}
            for name, text in streams.items()
            if text
        ]
        if value is not None:
            data = {"text/plain": repr(value).splitlines(keepends=True), **picture_of(value)}
            result = {
                "output_type": "execute_result",
                "execution_count": number,
                "metadata": {},
                "data": data,
            }
            cell["outputs"].append(result)
        cell["execution_count"] = number
    return notebook


def text_of(output: dict[str, Any]) -> str:
    return "".join(output.get("text") or output["data"]["text/plain"]).rstrip()


def output_as_markdown(output: dict[str, Any]) -> str:
    picture = output.get("data", {}).get("image/png")
    if picture:
        return f"![](data:image/png;base64,{picture})"
    return f"```text\n{text_of(output)}\n```"


def as_markdown(notebook: Notebook) -> str:
    """The cells as Markdown, each output below its code."""
    parts = []
    for cell in notebook["cells"]:
        source = "".join(cell["source"])
        parts.append(source if cell["cell_type"] == "markdown" else f"```python\n{source}\n```")
        parts += [output_as_markdown(output) for output in cell.get("outputs", ())]
    return "\n\n".join(parts) + "\n"


def main(path: Path) -> None:
    notebook = json.loads(path.read_text(encoding="utf-8"))
    with TemporaryDirectory() as folder, chdir(folder):
        run(notebook)
    path.write_text(json.dumps(notebook, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
