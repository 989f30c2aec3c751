"""`helicube plan`: which layout, how fast, how many users."""

from __future__ import annotations

import importlib
from pathlib import Path

import click

__all__ = ["command"]

_COMMANDS = {
    "calibrate": "Fit the constants of GPUs to kernel tables, and of engines to served runs.",
    "reproduce": "Compare with what the Helix paper reports.",
    "validate": "Predict measured serving runs, and print the errors.",
}


class _PlanGroup(click.Group):
    """A group whose subcommands are imported when they run."""

    def list_commands(self, ctx: click.Context) -> list[str]:  # noqa: ARG002 - click's signature
        return list(_COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:  # noqa: ARG002 - click's signature
        if cmd_name not in _COMMANDS:
            return None
        found = importlib.import_module(f"helicube.cli.plan_{cmd_name}").command
        assert isinstance(found, click.Command), f"helicube.cli.plan_{cmd_name}.command is not a click command"
        return found

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:  # noqa: ARG002 - click's signature
        with formatter.section("Commands"):
            formatter.write_dl(list(_COMMANDS.items()))


@click.group("plan", cls=_PlanGroup, invoke_without_command=True)
@click.option("--model", help="Name, or path of a Hugging Face config.json.")
@click.option("--gpu", help="Name, or path of a TOML file.")
@click.option(
    "--context", default="131072", show_default=True, help="Cached tokens per user; 128k and 1m count 1,024s."
)
@click.option("--max-gpus", type=int, help="Largest pool. Default: the domain of the fast links.")
@click.option("--gpus", type=int, help="Exactly this many GPUs.")
@click.option("--ttl-ms", type=float, help="Latency per token to keep: then throughput is maximised.")
@click.option("--users", type=int, help="Users to serve at a time.")
@click.option(
    "--precision",
    help="Of weights and cache: bf16, fp8, fp4. Default: the checkpoint's weights, with an fp8 cache if quantised.",
)
@click.option("--weights", help="Of the weights alone.")
@click.option("--cache", help="Of the cache alone.")
@click.option("--engine", default="trtllm", show_default=True, help="Whose overheads: trtllm, vllm, sglang, bound.")
@click.option("--no-graphs", is_flag=True, help="Launch every kernel from the host.")
@click.option("--no-hop-b", is_flag=True, help="Leave the overlap of exchange and attention out.")
@click.option("--no-padding", is_flag=True, help="Leave out layouts that do not divide evenly.")
@click.option("--families", help="Comma-separated out of tp, pp, dp, medha, dcp, helix.")
@click.option("-o", "--output", multiple=True, type=click.Path(path_type=Path), help=".html .json .csv .png .svg")
@click.option("--why-not", metavar="LAYOUT", help="Explain one layout, such as kvp=8,tpa=2.")
@click.option("--crossover", is_flag=True, help="Map over context and users: where KV parallelism pays.")
@click.option("--emit", metavar="ENGINE", help="Launch line for vllm, sglang, trtllm or helicube.")
@click.option("--list", "list_names", is_flag=True, help="Known models and GPUs.")
@click.pass_context
def command(
    ctx: click.Context, /, *, list_names: bool, no_graphs: bool, no_hop_b: bool, no_padding: bool, **options: object
) -> None:
    """Find the best way to decode a model on given GPUs at a given context.

    \b
    helicube plan --model deepseek-r1 --gpu gb200 --max-gpus 64 --context 1000000
    helicube plan --model ./config.json --gpu ./mine.toml --ttl-ms 20 -o plan.html
    """
    if ctx.invoked_subcommand is not None:
        return
    from helicube.cli.tables import print_names, print_report

    if list_names:
        print_names()
        return
    if not options["model"] or not options["gpu"]:
        missing = " and ".join(f"--{name}" for name in ("model", "gpu") if not options[name])
        raise click.UsageError(f"{missing} missing; see helicube plan --list for names, or give files of your own")
    from helicube.planner.request import PlanOptions, run_plan

    print_report(run_plan(PlanOptions(graphs=not no_graphs, hop_b=not no_hop_b, padding=not no_padding, **options)))  # type: ignore[arg-type]
