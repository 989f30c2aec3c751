"""`helicube run`: a language model on one process or on a Helix pool of several."""

from __future__ import annotations

from pathlib import Path

import click

__all__ = ["command"]


@click.command("run")
@click.argument("prompts", nargs=-1)
@click.option("--model", required=True, help="smollm2, a GGUF file, or a folder in Hugging Face format.")
@click.option("--prompt-file", type=click.Path(path_type=Path), help="A text file as a prompt, for long contexts.")
@click.option(
    "--layout",
    help='Such as "kvp=2,tpa=1", in place of the four options below; what is left out is filled up to the ranks.',
)
@click.option("--kvp", type=int, help="Ranks that share a sequence's cache, by tokens.")
@click.option("--tpa", type=int, help="Ranks that split the heads of attention; divides the KV heads.")
@click.option("--tpf", type=int, help="Ranks that split the FFN.")
@click.option("--ep", type=int, help="Groups of ranks that split the experts.")
@click.option(
    "--nproc", type=int, help="Processes to start; default: what the layout needs. Under torchrun, those it started."
)
@click.option("--max-tokens", default=256, show_default=True)
@click.option("--seed", default=0, show_default=True)
@click.option("--temperature", default=0.0, show_default=True, help="0 takes the likeliest.")
@click.option("--top-p", default=1.0, show_default=True, help="Share of likeliest choices drawn from.")
@click.option("--raw", is_flag=True, help="Continue the prompt as it is, without the model's chat template.")
@click.option("--check", is_flag=True, help="Compare logits and ids with one device, in float32; takes one prompt.")
@click.option("--block", default=16, show_default=True, help="Tokens dealt to a KVP rank at a time.")
@click.option("--chunk", default=512, show_default=True, help="Prompt tokens taken in at a time.")
@click.option("--cache-tokens", type=int, help="Tokens that the cache holds; default: what the prompts need.")
@click.option("--hopb", default=1, show_default=True, help="Parts of the batch whose exchange overlaps attention.")
@click.option(
    "--dtype",
    type=click.Choice(["auto", "float32", "bfloat16"]),
    default="auto",
    show_default=True,
    help="Of weights and cache; auto is float32 on a CPU and with --check, bfloat16 on a GPU.",
)
@click.option(
    "--weight-format",
    default="auto",
    show_default=True,
    help="float32, bfloat16, int8 or int4 in compiled kernels, on a CPU; auto is as --dtype, in PyTorch's products.",
)
@click.option("--timeout", default=60.0, show_default=True, help="Seconds after which a silent rank ends the run.")
def command(**options: object) -> None:
    """Continue each of PROMPTS with a language model, on one process or sharded over several.

    Text goes to standard output; times, sizes and the result of --check to standard error.
    """
    from helicube.pipelines.run_options import RunOptions
    from helicube.pipelines.run_text import run_text

    run_text(RunOptions(**options))  # type: ignore[arg-type]
