"""The demo: data made on the user's machine, every stage, a small model, and a table of what happened."""
