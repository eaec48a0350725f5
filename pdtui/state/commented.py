"""Pure: a text as a person wrote it, brought up to date: comments, order and quotes stay."""

from __future__ import annotations

import difflib
import io
import json
import re
from collections.abc import Mapping
from typing import Any

from backend.domain.yamlread import Mistake, read_all
from pdtui.state.yamltext import dump

Document = dict[str, Any]
_INDENTED = re.compile(r"^( *)[\w.'\"-]+:[ \t]*(?:#.*)?\n(?:[ \t]*(?:#.*)?\n)*( *)- ", re.M)


def updated(source: str, document: Mapping[str, Any]) -> str:
    """`source`, one document, saying what `document` says. Without comments to keep, or with a
    source that cannot be read, the plain text."""
    try:
        if "#" in source and len(found := read_all(source)) == 1:
            known = isinstance(found[0].data, Mapping)
            return edited(source, 0, dict(document)) if known else dump(document)
    except Mistake:
        pass
    return dump(document)


def edited(text: str, number: int, wanted: Document) -> str:
    """The text with document `number` saying what `wanted` says; the rest stays as it is.

    Where the change cannot be made in place, the documents are written anew.
    """
    parts = [d.data for d in read_all(text)]
    expected = [*parts[:number], wanted, *parts[number + 1 :]]
    new = _in_place(text, number, parts[number], wanted)
    if [d.data for d in read_all(new)] == expected:
        return new
    return "---\n".join(dump(p) for p in expected)


def _in_place(text: str, number: int, old: Any, wanted: Document) -> str:
    from ruamel.yaml import YAML

    yaml = YAML(typ="rt")
    yaml.preserve_quotes = True
    yaml.width = 4096
    found = _INDENTED.search(text)
    offset = len(found[2]) - len(found[1]) if found else 0
    yaml.indent(mapping=2, sequence=offset + 2, offset=offset)
    documents = list(yaml.load_all(text))
    seen = [i for i, d in enumerate(documents) if d is not None]
    _merge(documents[seen[number]], old, wanted)
    out = io.StringIO()
    yaml.explicit_start = text.lstrip().startswith("---")
    yaml.dump_all(documents, out)
    return out.getvalue()


def _merge(node: Any, old: Any, new: Any) -> None:
    """Change the mapping or list `node`, which says `old`, so that it says `new`."""
    if isinstance(new, Mapping):
        for key in [k for k in old if k not in new]:
            del node[key]
        for key, value in new.items():
            if key not in old:
                node[key] = value
            elif old[key] != value:
                if type(old[key]) is type(value) and isinstance(value, dict | list) and value:
                    _merge(node[key], old[key], value)
                else:
                    if isinstance(old[key], dict | list) or isinstance(value, dict | list):
                        node.ca.items.pop(key, None)  # remarks inside what is gone
                    node[key] = value
        return
    before, after = [[json.dumps(v, sort_keys=True) for v in side] for side in (old, new)]
    matcher = difflib.SequenceMatcher(None, before, after, autojunk=False)
    for kind, a, b, c, d in reversed(matcher.get_opcodes()):
        if kind == "replace" and b - a == d - c:
            for i, j in zip(range(a, b), range(c, d), strict=True):
                node[i] = new[j]
        elif kind != "equal":
            del node[a:b]
            for offset, value in enumerate(new[c:d]):
                node.insert(a + offset, value)
