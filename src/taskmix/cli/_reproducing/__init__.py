"""`taskmix reproduce`: one published experiment a command."""
