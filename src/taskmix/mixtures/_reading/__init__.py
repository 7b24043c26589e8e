"""Tables of runs on mixtures, from files or memory, and what in them cannot be used."""
