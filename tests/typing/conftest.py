collect_ignore = ["usage.py"]  # for a type checker, not to be run
