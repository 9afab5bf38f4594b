"""The same page for servers of WSGI and of ASGI."""

from string import Template

PAGE = Template(
    "<!doctype html>\n<title>bench</title>\n"
    "<p>request $count of this process</p>\n<ul>$rows</ul>\n"
)
count = 0


def page():
    global count
    count += 1
    rows = "".join(f"<li>row {row}</li>" for row in range(20))
    return PAGE.substitute(count=count, rows=rows).encode()


def app(_environ, start_response):
    body = page()
    start_response("200 OK", [("Content-Type", "text/html"), ("Content-Length", str(len(body)))])
    return [body]


async def asgi(scope, _receive, send):
    if scope["type"] != "http":
        raise NotImplementedError(scope["type"])
    body = page()
    head = [(b"content-type", b"text/html"), (b"content-length", str(len(body)).encode())]
    await send({"type": "http.response.start", "status": 200, "headers": head})
    await send({"type": "http.response.body", "body": body})
