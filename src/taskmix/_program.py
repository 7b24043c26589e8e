"""The program `taskmix`: it listens to signals before anything that takes time is imported."""


def main() -> None:
    """Runs a command. Exit codes: 0 done, 1 a run failed, 2 the input was wrong, 130 stopped."""
    import _signal  # type: ignore[import-not-found]  # `signal` itself takes milliseconds to import

    if hasattr(_signal, "pthread_sigmask"):  # not on Windows
        # A signal waits until somebody listens; Python would say it with a traceback.
        _signal.pthread_sigmask(_signal.SIG_BLOCK, (_signal.SIGINT, _signal.SIGTERM))
    from taskmix import _signals

    _signals.listen()
    try:
        from taskmix.cli import run_command

        run_command()
    except SystemExit as ended:
        if isinstance(ended.code, int):
            _signals.leave_with(ended.code)
        raise
    except _signals.Stopped:
        _signals.end()
