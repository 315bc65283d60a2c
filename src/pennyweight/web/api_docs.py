"""The page of the API, generated from its OpenAPI description."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from starlette.requests import Request

from pennyweight.web.site import Shown, Site


def docs(request: Request, site: Site) -> Shown:  # noqa: ARG001
    """Show the API from its OpenAPI description."""
    described = request.app.openapi()
    groups: dict[str, list[dict[str, Any]]] = {}
    for path, methods in described["paths"].items():
        for method, operation in methods.items():
            fields = [
                {**p, "type": _kind(p["schema"]), "text": p.get("description", "")}
                for p in operation.get("parameters", [])
            ]
            body: dict[str, Any] = operation.get("requestBody", {}).get("content", {})
            shape: dict[str, Any] = next((held["schema"] for held in body.values()), {})
            entry = {"path": path, "method": method.upper(), "summary": operation["summary"]}
            entry |= {"text": operation.get("description", ""), "fields": fields}
            entry |= {"body": _body(described, shape), "codes": sorted(operation["responses"])}
            groups.setdefault(operation["tags"][0], []).append(entry)
    return "docs.html", {"groups": groups, "info": described["info"]}


def _kind(schema: Mapping[str, Any]) -> str:
    kinds = [schema.get("type", "")] + [s.get("type", "") for s in schema.get("anyOf", [])]
    return " or ".join(k for k in kinds if k)


def _body(described: Mapping[str, Any], schema: Mapping[str, Any]) -> list[dict[str, str]]:
    name = schema.get("$ref", "").rpartition("/")[2]
    if not name:
        return [{"name": "(content of the file)", "type": "bytes"}] if schema else []
    properties = described["components"]["schemas"][name]["properties"]
    return [{"name": n, "type": _kind(p)} for n, p in properties.items()]
