"""Picture files: PNG, animated GIF, and sheets of many small pictures."""

from __future__ import annotations

import io
import math
from collections.abc import Iterable, Sequence
from dataclasses import replace
from pathlib import Path

import PIL.Image
from PIL import ImageDraw, ImageFont

from helicube.errors import InputError
from helicube.geometry.files import unwritable, write_files
from helicube.geometry.mesh import Mesh
from helicube.geometry.render import Image, RenderOptions, render, turntable

__all__ = ["check_picture", "contact_sheet", "encode_gif", "encode_png", "picture"]

INK = (60, 60, 66)

Picture = PIL.Image.Image
Font = ImageFont.FreeTypeFont | ImageFont.ImageFont


def picture(
    mesh: Mesh, path: str | Path, options: RenderOptions | None = None, *, frames: int = 36, seconds: float = 3.6
) -> Path:
    """Render a mesh to a PNG, or a full turn of it to an animated GIF, by the ending of `path`.

    Args:
        mesh: what to show.
        path: .png or .gif.
        options: view and quality; a GIF needs a background.
        frames, seconds: of a GIF.

    Raises:
        InputError: see `check_picture`.
        MissingExtraError: Embree is not installed.
    """
    path, options = Path(path), options or RenderOptions()
    check_picture(path, options)
    if path.suffix.lower() == ".png":
        data = encode_png(render(mesh, options))
    else:
        data = encode_gif(turntable(mesh, options, frames=frames), frame_ms=round(1000 * seconds / frames))
    write_files({path: data})
    return path


def check_picture(path: Path, options: RenderOptions) -> None:
    """Find out before anything is rendered whether the picture could be written.

    Raises:
        InputError: another ending than .png and .gif, a transparent GIF, or a place that cannot be written.
    """
    if path.suffix.lower() not in {".png", ".gif"}:
        raise InputError(f"cannot write the picture {path}: the ending must be .png, or .gif for a turntable")
    if path.suffix.lower() == ".gif" and options.background is None:
        raise InputError("a GIF cannot be half transparent; choose a background, or write a .png")
    if why := unwritable(path):
        raise InputError(f"cannot write the picture {path}: {why}")


def encode_png(image: Image) -> bytes:
    """(h, w, 4) uint8 as PNG; without alpha where all of it is opaque."""
    return png_of(to_pillow(image))


def encode_gif(images: Iterable[Image], *, frame_ms: int) -> bytes:
    """Opaque pictures of one size as an endless animation, with one palette so that still parts do not flicker."""
    pictures = [to_pillow(image).convert("RGB") for image in images]
    palette = strip(pictures[:: max(1, len(pictures) // 8)]).quantize(256)
    indexed = [p.quantize(palette=palette) for p in pictures]
    out = io.BytesIO()
    # The format counts in hundredths of a second, and browsers slow anything under 2 down to 10.
    duration = max(20, round(frame_ms / 10) * 10)
    indexed[0].save(out, "GIF", save_all=True, append_images=indexed[1:], duration=duration, loop=0, optimize=False)
    return out.getvalue()


def contact_sheet(
    meshes: Sequence[Mesh],
    labels: Sequence[str],
    path: str | Path,
    columns: int = 10,
    *,
    options: RenderOptions | None = None,
) -> Path:
    """Render many meshes into one PNG, row by row, each over its label.

    The size in the options, 256 pixels by default, is that of each picture.
    """
    if not meshes or len(meshes) != len(labels):
        raise InputError(
            f"a contact sheet needs as many labels as meshes, and at least one: {len(meshes)}, {len(labels)}"
        )
    if columns < 1:
        raise InputError(f"columns is {columns}; choose 1 or more")
    options = options or RenderOptions(size=256)
    if options.background is None:
        options = replace(options, background=(255, 255, 255))
    write_files({Path(path): png_of(sheet_of([render(m, options) for m in meshes], labels, columns, options))})
    return Path(path)


def sheet_of(images: Sequence[Image], labels: Sequence[str], columns: int, options: RenderOptions) -> Picture:
    size, text = options.size, max(11, options.size // 18)
    font = ImageFont.load_default(text)
    line, band = round(1.25 * text), round(2 * 1.25 * text) + 6
    columns = min(columns, len(images))
    rows = math.ceil(len(images) / columns)
    sheet = PIL.Image.new("RGB", (columns * size, rows * (size + band)), options.background)
    draw = ImageDraw.Draw(sheet)
    for i, (image, label) in enumerate(zip(images, labels, strict=True)):
        left, top = i % columns * size, i // columns * (size + band)
        sheet.paste(to_pillow(image).convert("RGB"), (left, top))
        for row, words in enumerate(wrapped(label, draw, font, size - 8)):
            draw.text((left + size / 2, top + size + row * line), words, fill=INK, font=font, anchor="ma")
    return sheet


def wrapped(label: str, draw: ImageDraw.ImageDraw, font: Font, width: float) -> list[str]:
    """A label in at most two lines of this width; what does not fit ends in dots."""
    lines = [""]
    for word in label.split():
        longer = f"{lines[-1]} {word}".strip()
        if not lines[-1] or draw.textlength(longer, font=font) <= width:
            lines[-1] = longer
        else:
            lines.append(word)
    if len(lines) > 2:
        lines = [lines[0], " ".join(lines[1:])]
    return [shortened(text, draw, font, width) for text in lines]


def shortened(text: str, draw: ImageDraw.ImageDraw, font: Font, width: float) -> str:
    if draw.textlength(text, font=font) <= width:
        return text
    while text and draw.textlength(text + "…", font=font) > width:
        text = text[:-1]
    return text.rstrip() + "…"


def to_pillow(image: Image) -> Picture:
    """(h, w, 4) uint8 to a picture with alpha only where needed."""
    rgba = PIL.Image.fromarray(image)
    return rgba.convert("RGB") if bool((image[..., 3] == 255).all()) else rgba


def strip(pictures: Sequence[Picture]) -> Picture:
    """Pictures side by side."""
    width, height = pictures[0].size
    out = PIL.Image.new("RGB", (width * len(pictures), height))
    for i, one in enumerate(pictures):
        out.paste(one, (i * width, 0))
    return out


def png_of(picture: Picture) -> bytes:
    out = io.BytesIO()
    picture.save(out, "PNG")
    return out.getvalue()
