from __future__ import annotations

import contextlib
import io
import re
import subprocess
import sys

import pytest

import taskmix
from taskmix.cli import run_command


def taskmix_command(*words: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "taskmix", *words], capture_output=True, text=True, timeout=120
    )


def test_help_needs_neither_torch_nor_arrow() -> None:
    code = (
        "import sys\n"
        "for name in ('torch', 'pyarrow', 'sklearn', 'scipy', 'numpy'): sys.modules[name] = None\n"
        "sys.argv = ['taskmix', '--help']\n"
        "from taskmix.cli import run_command\n"
        "run_command()\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stderr
    assert "train" in done.stdout


SEQUENCES = ("fit", "score", "next", "sample", "adapt")  # which the help of all does not list


def help_of(command: str) -> str:
    shown = io.StringIO()
    with (
        pytest.MonkeyPatch.context() as patch,
        contextlib.redirect_stdout(shown),
        pytest.raises(SystemExit) as ended,
    ):
        patch.setattr(sys, "argv", ["taskmix", *command.split(), "--help"])
        run_command()
    assert not ended.value.code
    return shown.getvalue()


def named_in(page: str) -> list[str]:
    return re.findall(r"^  ([a-z]+)  ", page.partition("\nCommands:\n")[2], re.MULTILINE)


@pytest.fixture(scope="module")
def pages() -> dict[str, str]:
    """The help of every command, and of the commands of a group."""
    found = {f"sequences {name}": help_of(f"sequences {name}") for name in SEQUENCES}
    for command in named_in(help_of("")):
        found[command] = help_of(command)
        for name in named_in(found[command]):
            found[f"{command} {name}"] = help_of(f"{command} {name}")
    assert {"advise", "train", "plan show"} <= set(found)
    return found


def test_every_command_has_help_with_an_example(pages: dict[str, str]) -> None:
    for command, page in pages.items():
        assert f"taskmix {command.removesuffix(' fit')} " in " ".join(page.split())


def test_a_flag_means_the_same_kind_of_thing_in_every_command(pages: dict[str, str]) -> None:
    kinds: dict[str, set[str]] = {}
    for page in pages.values():
        # That a flag may be given again, or has a smallest value, makes it no other thing.
        for flag, kind in re.findall(r"^  (--[a-z-]+) <(?:list\[)?([a-z|]+)", page, re.MULTILINE):
            kinds.setdefault(flag, set()).add(kind)
    assert not {flag: found for flag, found in kinds.items() if len(found) > 1}
    assert [command for command, page in pages.items() if "\n  --plan " in page] == ["train"]


def test_the_version_is_the_packages() -> None:
    assert taskmix_command("--version").stdout.strip() == f"taskmix {taskmix.__version__}"
