"""The program `taskmix`: it listens to signals before anything that takes time is imported."""

from taskmix import _signals


def main() -> None:
    """Runs a command. Exit codes: 0 done, 1 a run failed, 2 the input was wrong, 130 stopped."""
    _signals.listen()
    try:
        from taskmix.cli import main as run

        run()
    except _signals.Stopped:
        _signals.end()
