from __future__ import annotations

import importlib
import sys

import pytest
import typer

from taskmix import _gone, transfer
from taskmix.cli import run_command
from taskmix.cli._app import app


def typed(monkeypatch: pytest.MonkeyPatch, *words: str) -> int:
    monkeypatch.setattr(sys, "argv", ["taskmix", *words])
    with pytest.raises(SystemExit) as ended:
        run_command()
    return int(ended.value.code or 0)


@pytest.mark.parametrize(("command", "option"), _gone.OPTIONS, ids=" ".join)
def test_an_option_that_is_gone_is_refused_with_what_to_use_now(
    command: str,
    option: str,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    sentence = f"`{option}` of `taskmix {command}` is gone. {_gone.OPTIONS[command, option]}"
    for words in ([option], ["folder", f"{option}=3"]):
        assert typed(monkeypatch, *command.split(), *words) == 2
        assert capsys.readouterr().err == f"taskmix: {sentence}\n"


@pytest.mark.parametrize("command", _gone.COMMANDS)
def test_a_command_that_is_gone_is_refused_with_what_to_use_now(
    command: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    sentence = f"`taskmix {command}` is gone. {_gone.COMMANDS[command]}"
    for words in ([], ["--help"], ["folder", "--seed", "3"]):
        assert typed(monkeypatch, *command.split(), *words) == 2
        assert capsys.readouterr().err == f"taskmix: {sentence}\n"


def test_a_command_that_need_not_be_named_is_known_by_its_group(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert typed(monkeypatch, "sequences", "--stream") == 2
    assert "`--stream` of `taskmix sequences fit` is gone." in capsys.readouterr().err
    assert typed(monkeypatch, "laws", "find", "rows.csv", "--searcher", "operon") == 2
    assert "`--searcher` of `taskmix laws` is gone." in capsys.readouterr().err


def test_what_never_was_is_unknown_as_before(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert typed(monkeypatch, "train", "x", "--no-such-option") == 2
    assert "No such option: --no-such-option" in capsys.readouterr().err


def test_a_name_that_is_gone_says_what_to_use_now() -> None:
    said = r"^`taskmix\.transfer\.fit_kernel_surrogate` is gone\. Use `fit_linear_surrogate`\.$"
    with pytest.raises(ImportError, match=said):
        exec("from taskmix.transfer import fit_kernel_surrogate")
    with pytest.raises(AttributeError, match=said):
        _ = transfer.fit_kernel_surrogate  # type: ignore[attr-defined]
    with pytest.raises(ImportError, match="cannot import name 'never'"):
        exec("from taskmix.transfer import never")
    assert not hasattr(transfer, "fit_kernel_surrogate")


def options_of(command: str) -> set[str]:
    """The options of a command that exists, of all commands of a group."""
    found = typer.main.get_command(app)
    for word in command.split():
        found = found.commands[word]  # type: ignore[attr-defined]
    every = [found, *getattr(found, "commands", {}).values()]
    return {option for each in every for param in each.params for option in param.opts}


def test_nothing_is_said_to_be_gone_that_is_there() -> None:
    for command, option in _gone.OPTIONS:
        assert option not in options_of(command), f"taskmix {command} {option}"
    for command in _gone.COMMANDS:
        with pytest.raises(KeyError):
            options_of(command)
    for package, names in _gone.NAMES.items():
        module = importlib.import_module(f"taskmix.{package}")
        assert not names.keys() & set(module.__all__)
        for name, instead in names.items():
            with pytest.raises(AttributeError) as refused:
                getattr(module, name)
            assert instead in str(refused.value)
