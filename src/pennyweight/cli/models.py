"""`pennyweight models`: local models, and which providers have a key."""

from __future__ import annotations

import os

import click


@click.group("models", epilog="Example: pennyweight models pull smollm2-135m")
def command() -> None:
    """List and fetch local models."""


@command.command("list")
def list_() -> None:
    """List local models, and the providers with the variable that holds their key."""
    from pennyweight.models.local import available  # noqa: PLC0415
    from pennyweight.models.providers import PROVIDERS  # noqa: PLC0415

    for model in available():
        state = (
            "here"
            if model.path
            else f"{model.size / 1e6:,.0f} MB, 'pennyweight models pull' fetches it"
        )
        click.echo(f"local/{model.name:<20} {state}: {model.about}")
    for provider in PROVIDERS.values():
        key = provider.key_env
        state = (
            "no key needed"
            if not key
            else f"{key} is {'set' if os.environ.get(key) else 'not set'}"
        )
        click.echo(f"{provider.name + '/…':<26} {state}")


@command.command("pull")
@click.argument("name", default="smollm2-135m")
def pull_(name: str) -> None:
    """Fetch a local model into the cache."""
    from pennyweight.models.local import pull  # noqa: PLC0415

    click.echo(f"Fetching {name} …", err=True)
    click.echo(str(pull(name.removeprefix("local/"))))
