"""What the code must not do, read off its syntax: no file's content is ever run."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

import taskmix

SOURCES = sorted(Path(taskmix.__file__).parent.rglob("*.py"))
UNSAFE_MODULES = {"pickle", "cPickle", "dill", "cloudpickle", "joblib", "shelve", "marshal", "yaml"}
UNSAFE_CALLS = {
    "eval": "runs text",
    "exec": "runs text",
    "compile": "makes code of text",
    "__import__": "imports by name",
    "os.system": "runs a shell",
    "os.popen": "runs a shell",
    "tempfile.mktemp": "gives a name that another may take",
    "pa.deserialize": "may load a pickle",
    "pd.read_pickle": "loads a pickle",
}
REQUIRED = {  # an argument that a call has to have
    "torch.load": ("weights_only", True),
    "np.load": ("allow_pickle", False),
    "numpy.load": ("allow_pickle", False),
    "jinja2.Environment": ("autoescape", True),
}


def faults(source: str) -> Iterator[str]:
    """What is wrong with a module."""
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Import | ast.ImportFrom):
            module = node.module or "" if isinstance(node, ast.ImportFrom) else ""
            names = [module] if module else [each.name for each in node.names]
            for name in names:
                if name.partition(".")[0] in UNSAFE_MODULES:
                    yield f"line {node.lineno} imports {name}"
        elif isinstance(node, ast.Call):
            name = ast.unparse(node.func)
            given = {each.arg: getattr(each.value, "value", None) for each in node.keywords}
            if name in UNSAFE_CALLS:
                yield f"line {node.lineno} {UNSAFE_CALLS[name]}"
            if given.get("shell"):
                yield f"line {node.lineno} runs a shell"
            if name in REQUIRED and given.get(REQUIRED[name][0], "") is not REQUIRED[name][1]:
                yield f"line {node.lineno} calls {name} without {REQUIRED[name][0]}"


@pytest.mark.parametrize("path", SOURCES, ids=lambda path: "/".join(path.parts[-2:]))
def test_no_module_runs_what_it_reads(path: Path) -> None:
    assert list(faults(path.read_text(encoding="utf-8"))) == []


@pytest.mark.parametrize(
    "line",
    [
        "import pickle",
        "from yaml import load",
        "import joblib.memory",
        "eval(text)",
        "exec(text)",
        "os.system(word)",
        "subprocess.run(word, shell=True)",
        "torch.load(path)",
        "torch.load(path, weights_only=False)",
        "np.load(path)",
        "np.load(path, allow_pickle=True)",
        "jinja2.Environment()",
        "tempfile.mktemp()",
    ],
)
def test_each_of_these_would_be_seen(line: str) -> None:
    assert len(list(faults(line))) == 1


@pytest.mark.parametrize(
    "line", ["model.eval()", "torch.load(path, weights_only=True)", "re.compile(text)"]
)
def test_what_is_harmless_is_not_accused(line: str) -> None:
    assert list(faults(line)) == []
