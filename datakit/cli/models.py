"""`datakit models`: fetch models into the user's cache."""

import click

from datakit.cli.stages import CONTEXT


@click.group(context_settings=CONTEXT)
def models() -> None:
    """Models that stages use."""


@models.command()
@click.argument("name")
def fetch(name: str) -> None:
    """Fetch a model (lid.176) into the user's cache; its checksum is pinned."""
    from datakit.filter.models import fetch as fetch_model

    click.echo(f"{name}: {fetch_model(name)}")
