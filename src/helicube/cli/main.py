"""The `helicube` command: a table of lazily imported subcommands and one place where errors become a line."""

from __future__ import annotations

import errno
import importlib
import io
import os
import sys

import click

from helicube import __version__
from helicube.cli.usage import tell
from helicube.errors import HelicubeError
from helicube.idle_threads import let_idle_threads_sleep

# name -> one-line help. The module helicube.cli.<name> holds a click command called `command`.
# The help is repeated here so that `helicube --help` imports no command.
COMMANDS: dict[str, str] = {
    "generate": "Turn prompts into meshes.",
    "studio": "Type prompts in a browser and watch objects appear.",
    "serve": "The same over HTTP, for programs and for many users.",
    "render": "Show a mesh as a picture or a turntable.",
    "tokenize": "Encode a mesh as shape ids.",
    "detokenize": "Decode shape ids to a mesh.",
    "evaluate": "Measure a model.",
    "bench": "Measure decoding on this machine.",
    "quantize": "Write a model's weights in a smaller format.",
    "profile": "Show where the time of a prompt goes.",
    "run": "Continue text with a language model, on one process or sharded over several.",
    "train": "Train a model of your own.",
    "plan": "Find the best layout for a model on given GPUs.",
}


class LazyGroup(click.Group):
    """A group that imports a subcommand's module only when that subcommand runs."""

    def list_commands(self, ctx: click.Context) -> list[str]:  # noqa: ARG002 - click's signature
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:  # noqa: ARG002 - click's signature
        if cmd_name not in COMMANDS:
            return None
        module = importlib.import_module(f"helicube.cli.{cmd_name}")
        found = module.command
        assert isinstance(found, click.Command), f"helicube.cli.{cmd_name}.command is not a click command"
        return found

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:  # noqa: ARG002 - click's signature
        if COMMANDS:
            with formatter.section("Commands"):
                formatter.write_dl(list(COMMANDS.items()))


@click.group(cls=LazyGroup, context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100})
@click.version_option(__version__, prog_name="helicube")
def cli() -> None:
    """Text to 3D at interactive speed; decoding and planning for contexts of millions of tokens."""


def main() -> None:
    """Run the command line; a user's mistake ends in one line and a non-zero exit, never in a traceback."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            # A terminal that cannot show × gets a question mark, not a failure.
            stream.reconfigure(errors="replace")
    let_idle_threads_sleep()
    try:
        cli.main(prog_name="helicube", standalone_mode=False)
    except (click.exceptions.Abort, KeyboardInterrupt):
        click.echo("interrupted", err=True)
        sys.exit(130)
    except click.ClickException as error:
        tell(error)
        sys.exit(error.exit_code)
    except HelicubeError as error:
        click.echo(f"error: {error}", err=True)
        sys.exit(1)
    except BrokenPipeError:
        # The reader went away (`helicube ... | head`): leave quietly.
        silence_stdout()
        sys.exit(141)
    except OSError as error:
        if error.filename is not None:
            # A file that a command asked for and did not check.
            click.echo(f"error: {error.filename}: {error.strerror}; check the name and the permissions", err=True)
            sys.exit(1)
        # Without a name it is the terminal or pipe, or a fault of ours.
        if error.errno not in {errno.ENOSPC, errno.EIO, errno.EBADF}:
            raise
        silence_stdout()
        click.echo(f"error: the output cannot be written ({error.strerror}); free some space or name another", err=True)
        sys.exit(1)


def silence_stdout() -> None:
    """Keep Python from complaining at exit that what is buffered cannot be written."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
