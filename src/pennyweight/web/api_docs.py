"""The page of the API, generated from its OpenAPI description."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from starlette.requests import Request

from pennyweight.web.site import Site
from pennyweight.web.views import Shown


def docs(request: Request, site: Site) -> Shown:  # noqa: ARG001
    """Show the API from its OpenAPI description."""
    told = request.app.openapi()
    groups: dict[str, list[dict[str, Any]]] = {}
    for path, methods in told["paths"].items():
        for method, one in methods.items():
            fields = [
                {**p, "type": _kind(p["schema"]), "text": p.get("description", "")}
                for p in one.get("parameters", [])
            ]
            body: dict[str, Any] = one.get("requestBody", {}).get("content", {})
            shape: dict[str, Any] = next((held["schema"] for held in body.values()), {})
            entry = {"path": path, "method": method.upper(), "summary": one["summary"]}
            entry |= {"text": one.get("description", ""), "fields": fields}
            entry |= {"body": _body(told, shape), "codes": sorted(one["responses"])}
            groups.setdefault(one["tags"][0], []).append(entry)
    return "docs.html", {"groups": groups, "told": told["info"]}


def _kind(schema: Mapping[str, Any]) -> str:
    kinds = [schema.get("type", "")] + [s.get("type", "") for s in schema.get("anyOf", [])]
    return " or ".join(k for k in kinds if k)


def _body(told: Mapping[str, Any], schema: Mapping[str, Any]) -> list[dict[str, str]]:
    name = schema.get("$ref", "").rpartition("/")[2]
    if not name:
        return [{"name": "(content of the file)", "type": "bytes"}] if schema else []
    properties = told["components"]["schemas"][name]["properties"]
    return [{"name": n, "type": _kind(p)} for n, p in properties.items()]
