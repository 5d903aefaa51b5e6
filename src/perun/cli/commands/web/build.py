"""`perun web build`."""
import click


@click.command()
def build() -> None:
    """x"""
