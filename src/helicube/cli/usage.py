"""A mistake on the command line as one line: the value, the rule and the remedy."""

from __future__ import annotations

import click

__all__ = ["tell"]

EXAMPLES = {"--box": "--box 1 2 1"}
# Of types whose message does not say what they take.
KINDS = {"float": "number", "integer": "whole number"}


def tell(error: click.ClickException) -> None:
    """Print a mistake; a command without its subcommand prints its help."""
    if isinstance(error, click.UsageError) and not isinstance(error, click.exceptions.NoArgsIsHelpError):
        click.echo(usage_line(error), err=True)
    else:
        error.show()


def usage_line(error: click.UsageError) -> str:
    """click's message, what the option takes, and where its help is."""
    message = error.format_message().rstrip(".")
    asked = f"{error.ctx.command_path} --help" if error.ctx is not None else "--help"
    return f"error: {message}; {option_rule(error)}see `{asked}`"


def option_rule(error: click.UsageError) -> str:
    """How the option that the mistake is in is written: `--box takes 3 numbers, such as --box 1 2 1; `."""
    if isinstance(error, click.BadOptionUsage):
        # It knows its name alone.
        example = EXAMPLES.get(error.option_name)
        return f"write it as {example}; " if example else ""
    option = error.param if isinstance(error, click.BadParameter) else None
    if not isinstance(option, click.Option) or option.type.name not in KINDS:
        return ""
    name, kind = max(option.opts, key=len), KINDS[option.type.name]
    takes = f"{option.nargs} {kind}s" if option.nargs > 1 else f"a {kind}"
    example = f", such as {EXAMPLES[name]}" if name in EXAMPLES else ""
    return f"{name} takes {takes}{example}; "
