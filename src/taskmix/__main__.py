"""`python -m taskmix` is `taskmix`."""

from taskmix._program import main

main()
