"""No module imports itself in a circle, not even for its types or inside a function."""

import ast
from graphlib import TopologicalSorter
from pathlib import Path

PACKAGE = Path(__file__).parent.parent / "ra"


def imports(modules: dict[str, Path]) -> dict[str, set[str]]:
    """Who imports whom, wherever in a module the import stands."""
    graph: dict[str, set[str]] = {}
    for name, path in modules.items():
        imported = graph[name] = set()
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.Import):
                imported |= {alias.name for alias in node.names}
            elif isinstance(node, ast.ImportFrom) and node.module:
                # `from package import module` imports the module, `from module import name` that one alone
                names = {f"{node.module}.{alias.name}" for alias in node.names}
                imported |= (names & modules.keys()) or {node.module}
    return {name: (imported & modules.keys()) - {name} for name, imported in graph.items()}


def test_no_imports_go_in_a_circle() -> None:
    paths = {path.relative_to(PACKAGE.parent).with_suffix(""): path for path in PACKAGE.rglob("*.py")}
    modules = {".".join(module.parts).removesuffix(".__init__"): path for module, path in paths.items()}
    TopologicalSorter(imports(modules)).prepare()  # raises CycleError, which names the modules
