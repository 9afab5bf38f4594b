"""A web app: `hob serve` calls this for each request (WSGI)."""

from html import escape
from urllib.parse import parse_qs


def application(environ, start_response):
    name = parse_qs(environ["QUERY_STRING"]).get("name", ["world"])[0]
    start_response("200 OK", [("Content-Type", "text/html; charset=utf-8")])
    return [f"<!doctype html><title>PROJECT</title><p>Hello, {escape(name)}!\n".encode()]
