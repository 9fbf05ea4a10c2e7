"""Checks values against schemas of an OpenAPI 3.0 document: as much of JSON Schema as ours uses.

A keyword that is not known here is an error, so that no rule of the document goes unchecked.
"""

import re

_ANNOTATIONS = {"description", "default", "example", "format"}
_KNOWN = _ANNOTATIONS | {"type", "properties", "required", "additionalProperties", "items", "enum",
                         "minimum", "maximum", "exclusiveMinimum", "minLength", "maxLength", "pattern",
                         "minItems", "maxItems", "nullable", "oneOf", "$ref"}
_TYPES = {"object": dict, "array": list, "string": str, "boolean": bool}
_TIME = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?Z")


class Document:
    def __init__(self, document):
        self.document = document

    def resolve(self, value):
        while "$ref" in value:
            target = self.document
            for part in value["$ref"].removeprefix("#/").split("/"):
                target = target[part]
            value = target
        return value

    def operation(self, method, path):
        """(pattern, operation) of a request's path without its query."""
        found = []
        for pattern, item in self.document["paths"].items():
            expression = re.sub(r"\{\w+\}", "[^/]+", pattern)
            if re.fullmatch(expression, path) and method.lower() in item:
                found.append((pattern, item[method.lower()]))
        found.sort(key=lambda one: one[0].count("{"))  # exact ones first
        return found[0] if found else (None, None)

    def problems_of(self, method, path, status, content_type, value):
        """What is not as the document says; an empty list: nothing."""
        method = "GET" if method == "HEAD" else method
        pattern, operation = self.operation(method, path)
        if operation is None:
            return []
        where = f"{method} {pattern} {status}"
        answer = operation["responses"].get(str(status))
        if answer is None:
            return [f"{where} is not described"]
        content = self.resolve(answer).get("content", {})
        kind = (content_type or "").split(";")[0]
        if not content:
            return [] if value is None else [f"{where} has a body"]
        if kind not in content:
            return [f"{where}: {kind!r} is not described"]
        if kind != "application/json":
            return []
        return [f"{where}: {problem}" for problem in self.check(value, content[kind]["schema"], "$")]

    def check(self, value, schema, at):
        schema = self.resolve(schema)
        unknown = set(schema) - _KNOWN
        if unknown:
            return [f"{at}: unknown keywords {unknown} in the schema"]
        if value is None and schema.get("nullable"):
            return []
        if "oneOf" in schema:
            fits = [one for one in schema["oneOf"] if not self.check(value, one, at)]
            return [] if len(fits) == 1 else [f"{at}: fits {len(fits)} of oneOf"]
        return (self._type(value, schema, at) or self._bounds(value, schema, at)
                or self._object(value, schema, at) or self._array(value, schema, at))

    @staticmethod
    def _type(value, schema, at):
        kind = schema.get("type")
        number = isinstance(value, (int, float)) and not isinstance(value, bool)
        if kind == "number":
            fits = number
        elif kind == "integer":
            fits = number and value == int(value)
        else:
            fits = kind is None or isinstance(value, _TYPES[kind])
        return [] if fits else [f"{at}: {value!r} is no {kind}"]

    @staticmethod
    def _bounds(value, schema, at):
        problems = []
        if "enum" in schema and value not in schema["enum"]:
            problems.append(f"{at}: {value!r} is none of {schema['enum']}")
        if isinstance(value, (int, float)) and not isinstance(value, bool):
            low, high = schema.get("minimum", value), schema.get("maximum", value)
            if not low <= value <= high or (schema.get("exclusiveMinimum") and value == low):
                problems.append(f"{at}: {value} is out of bounds")
        if isinstance(value, str):
            if not schema.get("minLength", 0) <= len(value) <= schema.get("maxLength", len(value)):
                problems.append(f"{at}: a text of {len(value)} characters")
            if "pattern" in schema and not re.search(schema["pattern"], value):
                problems.append(f"{at}: {value!r} is not as {schema['pattern']}")
            if schema.get("format") == "date-time" and not _TIME.fullmatch(value):
                problems.append(f"{at}: {value!r} is no time")
        return problems

    def _object(self, value, schema, at):
        if not isinstance(value, dict):
            return []
        problems = [f"{at}.{name} is missing" for name in schema.get("required", []) if name not in value]
        others = schema.get("additionalProperties", True)
        for name, part in value.items():
            if name in schema.get("properties", {}):
                problems += self.check(part, schema["properties"][name], f"{at}.{name}")
            elif others is False:
                problems.append(f"{at}.{name} is not described")
            elif isinstance(others, dict):
                problems += self.check(part, others, f"{at}.{name}")
        return problems

    def _array(self, value, schema, at):
        if not isinstance(value, list):
            return []
        problems = []
        if not schema.get("minItems", 0) <= len(value) <= schema.get("maxItems", len(value)):
            problems.append(f"{at}: {len(value)} elements")
        for i, part in enumerate(value):
            problems += self.check(part, schema.get("items", {}), f"{at}[{i}]")
        return problems
