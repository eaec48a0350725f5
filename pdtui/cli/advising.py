"""`pdtui advise`: whether disaggregation pays for a deployment and its traffic."""

from __future__ import annotations

import json as json_
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from pdtui.cli.common import ask, guarded, plain, print_json
from pdtui.i18n import current, tr

if TYPE_CHECKING:
    from backend.client.http import HttpClient
    from backend.domain.advice.model import Advice


@guarded
def advise(
    context: typer.Context,
    target: Annotated[
        str, typer.Argument(metavar="GROUP|FILE", help="A deployment, or a document's file.")
    ],
    prompt_tokens: Annotated[
        float | None, typer.Option(help="Tokens of a prompt on average.", min=1)
    ] = None,
    output_tokens: Annotated[
        float | None, typer.Option(help="Tokens of an answer on average.", min=1)
    ] = None,
    rps: Annotated[float | None, typer.Option(help="Requests a second.", min=0.001)] = None,
    link_gbit: Annotated[
        float | None, typer.Option(help="Gbit/s between prefill and decode.", min=0.001)
    ] = None,
    prefill_rate: Annotated[
        float | None, typer.Option(help="Prompt tokens a second of one member.", min=1)
    ] = None,
    decode_rate: Annotated[
        float | None, typer.Option(help="Output tokens a second of one member.", min=1)
    ] = None,
    config: Annotated[
        Path | None, typer.Option(help="The model's config.json, where no host has the model.")
    ] = None,
    accelerator: Annotated[
        str | None, typer.Option(help="The cards' type, for estimates: H100, A100, 910B ...")
    ] = None,
    json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
) -> None:
    """Answer with numbers whether separate prefill and decode pay, or plain replicas do better."""
    asked: dict[str, Any] = {
        "prompt_tokens": prompt_tokens,
        "output_tokens": output_tokens,
        "rps": rps,
        "link_gbit": link_gbit,
        "prefill_rate": prefill_rate,
        "decode_rate": decode_rate,
        "config": _config(config) if config else None,
        "accelerator": accelerator,
    }
    file = Path(target)
    if "/" in target or file.is_file():
        asked["document"] = _document(file)
    else:
        asked["name"] = target

    async def question(client: HttpClient) -> Advice:
        from pdtui.cli.groups import settled

        await settled(client)
        return await client.advise(**asked)

    found = ask(context.obj, question)
    if json:
        print_json(found)
    else:
        _print(found)


def _config(path: Path) -> dict[str, Any]:
    from backend.domain.errors import Invalid

    try:
        found = json_.loads(path.read_bytes())
    except (OSError, ValueError) as error:
        raise Invalid.of(
            "advise.config",
            f"{path} cannot be read as JSON: {error}.",
            path="--config",
            values={"file": str(path)},
            remedy="Give the model's config.json.",
        ) from None
    if not isinstance(found, dict):
        raise Invalid.of(
            "advise.config",
            f"{path} holds no JSON object.",
            path="--config",
            values={"file": str(path)},
            remedy="Give the model's config.json.",
        )
    return found


def _document(path: Path) -> dict[str, Any]:
    """The one deployment of a file. Raises Invalid."""
    from backend.domain.errors import Invalid
    from pdtui.cli.files import read_documents

    found = [d for d in read_documents(path) if isinstance(d, dict)]
    deployments = [d for d in found if d.get("kind") == "Deployment"]
    if len(deployments) != 1:
        raise Invalid.of(
            "advise.document",
            f"{path} holds {len(deployments)} deployments; one is asked about.",
            values={"file": str(path), "deployments": len(deployments)},
            remedy="Give a file with one deployment.",
        )
    return deployments[0]


def _print(found: Advice) -> None:
    language = current()
    lines = [
        f"{found.deployment}: {tr(f'advice.worth.{found.worth}')}. {found.text.text(language)}"
    ]
    for answer in found.answers:
        verdict = tr(f"advice.verdict.{answer.verdict}")
        lines += [
            f"  {tr(f'advice.question.{answer.question}')} {verdict}",
            f"    {answer.text.text(language)}",
        ]
    if found.suggestion:
        lines.append(f"  {tr('advice.suggestion')}: {found.suggestion.text(language)}")
    lines += [f"  {tr('advice.missing')}: {m.text(language)}" for m in found.missing]
    for item in found.facts:
        source = f" ({tr(f'advice.source.{item.source}')})" if item.source else ""
        lines.append(f"  {tr(f'advice.fact.{item.name}')}: {item.shown}{source}")
    for line in lines:
        typer.echo(plain(line))
