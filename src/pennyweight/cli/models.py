"""`pennyweight models`: local models, and the API keys of providers."""

from __future__ import annotations

import click


@click.group("models", epilog="Example: pennyweight models pull smollm2-135m")
def command() -> None:
    """List and fetch models that run on this machine."""


@command.command("list", epilog="Example: pennyweight models list")
def list_() -> None:
    """List local models, and the variable of each provider's API key."""
    from pennyweight.api.models import available, provider_keys

    for model in available():
        fetch = f"{model.size / 1e6:,.0f} MB, fetch it with 'pennyweight models pull {model.name}'"
        state = "installed" if model.path else fetch
        click.echo(f"local/{model.name:<20} {state}: {model.about}")
    for provider in provider_keys():
        state = f"{provider.key_env} is {'set' if provider.key_is_set else 'not set'}"
        click.echo(f"{provider.name + '/…':<26} {state if provider.key_env else 'needs no key'}")


@command.command("pull", epilog="Example: pennyweight models pull smollm2-135m")
@click.argument("name", default="smollm2-135m")
def pull_(name: str) -> None:
    """Download the local model NAME into the cache, and print its path."""
    from pennyweight.api.models import available, pull_model

    if any(m.name == name.removeprefix("local/") and m.path is None for m in available()):
        click.echo(f"Fetching {name} …", err=True)
    click.echo(str(pull_model(name)))
