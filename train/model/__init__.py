"""The model: its layers, losses, adapters and files."""
