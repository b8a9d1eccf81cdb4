#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""generate.py BINARY [DIRECTORY]: writes the types of both clients (into DIRECTORY) from the schemas that the program prints."""
import json
import pathlib
import re
import subprocess
import sys

HERE = pathlib.Path(__file__).resolve().parent
HEAD = "SPDX-License-Identifier: Apache-2.0\n{0} Made by clients/generate.py from the program's schemas. Do not edit."
PYTHON = {"string": "str", "integer": "int", "number": "float", "boolean": "bool", "null": "None"}
GO = {"string": "string", "integer": "int64", "number": "float64", "boolean": "bool"}
INITIALISMS = {"id": "ID", "ids": "IDs", "sha256": "SHA256", "ms": "MS", "cpu": "CPU", "rss": "RSS", "abi": "ABI", "ext": "Ext"}


def camel(name):
    return "".join(INITIALISMS.get(word, word[:1].upper() + word[1:]) for word in re.split("[_-]", name))


def types_of(schema):
    """The types that a schema takes, without null; and whether it takes null."""
    given = schema.get("type", [])
    kinds = [given] if isinstance(given, str) else list(given)
    takes_null = "null" in kinds or None in schema.get("enum", [])
    return [kind for kind in kinds if kind != "null"], takes_null


def one_of(name):
    """Matches -> Match, Children -> Child, Files -> File, Acceptance -> AcceptanceItem"""
    for plural, singular in (("ches", "ch"), ("Children", "Child"), ("ss", "ssItem"), ("s", "")):
        if name.endswith(plural):
            return name.removesuffix(plural) + singular
    return name + "Item"


class Names:
    """Every object becomes a type with a name of its own; in the order in which they must be declared."""

    def __init__(self):
        self.objects = {}

    def visit(self, schema, name):
        """Declares what is inside first. A schema that holds itself is visited once."""
        if schema.get("visited"):
            return
        schema["visited"] = True
        for key, part in schema.get("properties", {}).items():
            self.visit(part, name + camel(key))
        if isinstance(schema.get("items"), dict):
            self.visit(schema["items"], one_of(name))
        if schema.get("properties") and "object" in types_of(schema)[0]:
            schema["name"] = name
            self.objects[name] = schema


def resolve(part, document):
    """Replaces a reference to an enclosing schema by that schema. Another name for a field stays a reference, and is left out."""
    for key, inner in list(part.items()):
        if isinstance(inner, dict) and list(inner) == ["$ref"]:
            target = document
            for token in inner["$ref"].removeprefix("#/").split("/"):
                target = target[token]
            part[key] = target
        elif isinstance(inner, dict):
            resolve(inner, document)


def joined(schema):
    """Puts together what the program says apart for each type that a value may have: {"anyOf": [{"type": ...}, ...]}."""
    for inner in schema.values() if isinstance(schema, dict) else schema:
        if isinstance(inner, (dict, list)):
            joined(inner)
    parts = schema.get("anyOf", []) if isinstance(schema, dict) and "type" not in schema else []
    if parts and all(isinstance(part.get("type"), str) and "$ref" not in part for part in parts):
        del schema["anyOf"]
        kinds = [part.pop("type") for part in parts]
        for part in parts:
            schema.update(part)
        schema["type"] = kinds
    return schema


def python_type(schema):
    kinds, takes_null = types_of(schema)
    if "const" in schema or "enum" in schema:
        values = schema.get("enum", [schema.get("const")])
        text = "Literal[" + ", ".join(repr(value) for value in values if value is not None) + "]"
    elif "name" in schema and kinds == ["object"]:
        text = schema["name"]
    elif kinds:
        text = " | ".join({"array": f"list[{python_type(schema.get('items', {}))}]", "object": schema.get("name", "dict[str, Any]")}.get(kind)
                          or PYTHON[kind] for kind in kinds)
    else:
        return "Any"
    return text + " | None" if takes_null else text


def python(objects):
    lines = [f"# {HEAD.format('#')}", '"""The job and the result as Python sees them."""', "from __future__ import annotations", "", "from typing import Any, Literal, NotRequired, TypedDict"]
    for name, schema in objects.items():
        lines += ["", "", f"class {name}(TypedDict):"]
        if "description" in schema:
            lines += [f'    """{schema["description"]}"""', ""]
        for key, part in schema["properties"].items():
            if not key.isidentifier() or "$ref" in part:
                continue
            text = python_type(part)
            lines.append(f"    {key}: {text if key in schema.get('required', []) else f'NotRequired[{text}]'}")
            if "description" in part:
                lines.append(f'    """{part["description"]}"""'.replace("\\", "\\\\"))
    return "\n".join(lines) + "\n"


def go_type(schema, is_required):
    kinds, takes_null = types_of(schema)
    if "enum" in schema or "const" in schema:
        kinds = ["string"]
    if len(kinds) != 1:
        return "json.RawMessage"
    kind = kinds[0]
    if kind == "array":
        items = schema.get("items", {})
        return "[]" + (go_type(items, True) if items else "json.RawMessage")
    text = schema.get("name", "map[string]json.RawMessage") if kind == "object" else GO[kind]
    is_pointer = (takes_null or not is_required) and not text.startswith("map")
    return "*" + text if is_pointer else text


def go(objects):
    lines = [f"// {HEAD.format('//')}", "", "// Package cynodesba has the job and the result of cynode-sba as Go sees them.", "package cynodesba", "",
             'import "encoding/json"']
    for name, schema in objects.items():
        lines += ["", f"// {name}: {schema.get('description', 'see the documentation of ' + name + '.')}", f"type {name} struct {{"]
        for key, part in schema["properties"].items():
            if "$ref" in part:
                continue
            is_required = key in schema.get("required", [])
            if "description" in part:
                lines.append(f"\t// {part['description']}")
            text = go_type(part, is_required)
            # In a job null means left out, and an empty list is not the same.
            stays = is_required or name.startswith("Job") and text.startswith("[]")
            lines.append(f"\t{camel(key.lstrip('$'))} {text} `json:\"{key}{'' if stays else ',omitempty'}\"`")
        lines.append("}")
    return "\n".join(lines) + "\n"


def main(binary, directory=HERE):
    directory = pathlib.Path(directory)
    def schema(what):
        return joined(json.loads(subprocess.run([binary, "--schema", what], check=True, capture_output=True).stdout))
    job, result, steps = schema("job"), schema("result"), schema("steps")
    resolve(steps, steps)
    names = Names()
    general = {"type": "object", "required": ["type"], "description": "One step; arguments are those of its type.", "properties": {
        "id": {"type": "string"}, "type": {"type": "string", "enum": list(steps["properties"])}, "arguments": {"type": "object"}}}
    of_any = job["$defs"]["run_command"]["properties"]
    general["properties"].update({name: of_any[name] for name in ("on_failure", "always")})
    for name, step in steps["properties"].items():
        names.visit(step["properties"]["arguments"], camel(name) + "Arguments")
        names.visit(step["properties"]["result"], camel(name) + "Result")
    job["properties"]["steps"]["items"] = general
    criterion = job["properties"]["context"]["properties"]["acceptance_criteria"]["items"]["properties"]
    criterion["check"] = {**criterion["check"]["anyOf"][0], "name": "RunCommandArguments", "visited": True}
    del criterion["check"]["$ref"]
    names.visit(job, "Job")
    names.visit(result, "Result")
    (directory / "python/cynode_sba/types.py").write_text(python(names.objects))
    (directory / "go/types.go").write_text(go(names.objects))
    subprocess.run(["gofmt", "-w", directory / "go/types.go"], check=True)


if __name__ == "__main__":
    main(*sys.argv[1:])
