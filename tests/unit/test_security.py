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


DELETING = {"unlink", "rmdir", "rmtree", "remove", "removedirs", "rename", "renames", "move"}
MAY_DELETE = Path(taskmix.__file__).parent / "files" / "_atomic.py"


def deletions(source: str) -> Iterator[str]:
    """Calls that delete a file, or put another in its place."""
    for node in ast.walk(ast.parse(source)):
        if not isinstance(node, ast.Call) or not isinstance(node.func, ast.Attribute):
            continue
        call, name = ast.unparse(node.func), node.func.attr
        of_a_module = call.split(".")[0] in ("os", "shutil", "pathlib", "Path")
        is_file = name in DELETING and (name not in ("remove", "move") or of_a_module)
        # A string's `replace` takes two arguments, a dataclass's is a function with keywords.
        puts_in_place = name == "replace" and len(node.args) == 1 and not node.keywords
        if is_file or puts_in_place or call == "os.replace":
            yield f"line {node.lineno} calls {call}"


@pytest.mark.parametrize("path", SOURCES, ids=lambda path: "/".join(path.parts[-2:]))
def test_only_one_module_deletes_or_replaces_files(path: Path) -> None:
    found = list(deletions(path.read_text(encoding="utf-8")))
    assert bool(found) == (path == MAY_DELETE), found


def test_files_are_deleted_in_one_function_and_replaced_in_two() -> None:
    """Everything that deletes is told how to know our files."""
    functions = [
        node.name
        for node in ast.parse(MAY_DELETE.read_text(encoding="utf-8")).body
        if isinstance(node, ast.FunctionDef) and list(deletions(ast.unparse(node)))
    ]
    assert functions == ["replacing", "making_folder", "delete"]


@pytest.mark.parametrize(
    "line",
    [
        "path.unlink()",
        "os.remove(path)",
        "shutil.rmtree(folder)",
        "folder.rmdir()",
        "aside.rename(path)",
        "aside.replace(path)",
        "os.replace(aside, path)",
        "shutil.move(aside, path)",
    ],
)
def test_each_deletion_would_be_seen(line: str) -> None:
    assert len(list(deletions(line))) == 1


@pytest.mark.parametrize(
    "line", ["words.replace('a', 'b')", "replace(run, seed=1)", "names.remove('a')", "x.move()"]
)
def test_what_deletes_no_file_is_not_accused(line: str) -> None:
    assert list(deletions(line)) == []


# Calls that open a file by its path. Pipes, devices and sparse files wait for ever or take all memory,
# so only `taskmix.files` opens files to read; what has a reason of its own is named here.
OPENING = {
    "open",
    "read_bytes",
    "read_text",
    "fdopen",
    "safe_open",
    "load_file",
    "fromfile",
    "loadtxt",
    "genfromtxt",
    "memmap",
    "memory_map",
    "OSFile",
    "read_table",
    "ParquetDataset",
    "ParquetFile",
    "from_pretrained",
    "ZipFile",
    "GzipFile",
    "TarFile",
}
OPENING_CALLS = {
    "np.load",
    "numpy.load",
    "torch.load",
    "json.load",
    "tomllib.load",
    "pa.input_stream",
}
MAY_OPEN = {
    ("tasks/_write.py", "open"): "writes",
    ("cli/_commands/_predict.py", "open"): "writes standard input to a file of its own",
    ("report/_shell.py", "read_text"): "reads a file of the package",
    ("engine/_apart.py", "OSFile"): "writes, into a temporary folder of its own",
    ("engine/_apart.py", "memory_map"): "of a temporary folder that a parent process wrote",
    ("engine/_apart.py", "np.load"): "of a temporary folder that a parent process wrote",
    ("training/_draws.py", "read_table"): "after check_plain",
    ("tasks/_encoding/_cache.py", "safe_open"): "after check_plain",
    ("tasks/_encoding/_pretrained.py", "safe_open"): "after check_plain",
    ("tasks/_encoding/_vectors.py", "ZipFile"): "of a file that open_plain opened",
    ("tasks/_encoding/_vectors.py", "np.load"): "of a file that open_plain opened",
    ("tasks/_formats/_arrow.py", "ParquetFile"): "of a file that open_plain opened",
    ("tasks/_formats/_xlsx.py", "ZipFile"): "of bytes that file_bytes read",
    ("records/_parts.py", "ParquetFile"): "of a file that open_plain opened",
    ("tasks/_encoding/_pretrained.py", "from_pretrained"): "after check_plain_folder",
    ("_signals.py", "open"): "reads what the kernel tells of processes",
    ("cli/_commands/_laws.py", "read_table"): "our own, on read_rows",
    ("laws/_learn.py", "read_table"): "our own, on read_rows",
}


def openings(source: str) -> Iterator[str]:
    """Calls that open a file to read it."""
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Call):
            call = ast.unparse(node.func)
            name = call.rpartition(".")[2]
            if call in OPENING_CALLS:
                yield call
            elif name in OPENING:
                yield name


@pytest.mark.parametrize("path", SOURCES, ids=lambda path: "/".join(path.parts[-2:]))
def test_only_one_package_opens_files(path: Path) -> None:
    place = path.relative_to(Path(taskmix.__file__).parent).as_posix()
    if not place.startswith("files/"):
        found = set(openings(path.read_text(encoding="utf-8")))
        assert found <= {name for where, name in MAY_OPEN if where == place}


def test_every_exception_is_still_one() -> None:
    root = Path(taskmix.__file__).parent
    for place, name in MAY_OPEN:
        assert name in set(openings((root / place).read_text(encoding="utf-8"))), (place, name)


@pytest.mark.parametrize(
    "line",
    [
        "open(path)",
        "path.open('rb')",
        "os.open(path, flags)",
        "path.read_bytes()",
        "path.read_text()",
        "np.load(path)",
        "json.load(file)",
        "gzip.open(path)",
        "pq.read_table(path)",
        "pa.OSFile(str(path))",
        "pa.memory_map(path)",
        "safetensors.torch.load_file(path)",
        "AutoModel.from_pretrained(path)",
        "tomllib.load(file)",
    ],
)
def test_each_opening_would_be_seen(line: str) -> None:
    assert len(list(openings(line))) == 1


@pytest.mark.parametrize("line", ["json.loads(text)", "open_plain(path)", "load_state(path)"])
def test_what_opens_no_file_is_not_accused(line: str) -> None:
    assert list(openings(line)) == []


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
