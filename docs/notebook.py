"""Run a notebook without Jupyter, or convert it to Markdown; `python docs/notebook.py FILE` stores its outputs."""

import ast
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


def run(notebook: Notebook) -> Notebook:
    """Execute the code cells in one namespace, in the working directory, and replace their outputs."""
    names: dict[str, Any] = {"__name__": "__main__"}
    for number, cell in enumerate(code_cells(notebook), 1):
        *statements, last = ast.parse("".join(cell["source"])).body
        statements += [] if isinstance(last, ast.Expr) else [last]
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
            data = {"text/plain": repr(value).splitlines(keepends=True)}
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


def as_markdown(notebook: Notebook) -> str:
    """The cells as Markdown, each output in a block below its code."""
    parts = []
    for cell in notebook["cells"]:
        source = "".join(cell["source"])
        parts.append(source if cell["cell_type"] == "markdown" else f"```python\n{source}\n```")
        parts += [f"```text\n{text_of(output)}\n```" for output in cell.get("outputs", ())]
    return "\n\n".join(parts) + "\n"


def main(path: Path) -> None:
    notebook = json.loads(path.read_text(encoding="utf-8"))
    with TemporaryDirectory() as folder, chdir(folder):
        run(notebook)
    path.write_text(json.dumps(notebook, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
