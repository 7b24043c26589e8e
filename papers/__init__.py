"""Published experiments, with the papers' figures beside ours: `python -m papers --list`.

They stand beside the package and use what it offers to everybody. No experiment knows another.
"""
