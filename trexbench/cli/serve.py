"""``trexbench serve``: the embedded STL server by itself, for TRex's console or another client."""

from __future__ import annotations

import click

_HELP_FLAG = {"ignore_unknown_options": True, "help_option_names": []}


@click.command(context_settings=_HELP_FLAG, add_help_option=False)
@click.argument("arguments", nargs=-1, type=click.UNPROCESSED)
def serve(arguments: tuple[str, ...]) -> int:
    """Run the embedded STL server; its options are the server's own (`trexbench serve --help`)."""
    from ..stlserver.__main__ import main

    try:
        return main(list(arguments))
    except SystemExit as ended:  # argparse exits by itself, for --help too
        return int(ended.code or 0)
