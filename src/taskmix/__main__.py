"""`python -m taskmix` is `taskmix`."""

from taskmix.cli import main

main()
