"""Starlette: url_path_for, redirects, a session, a form, an upload, a stream, lifespan, a WebSocket."""

import contextlib

from starlette.applications import Starlette
from starlette.middleware import Middleware
from starlette.middleware.sessions import SessionMiddleware
from starlette.responses import PlainTextResponse, RedirectResponse, StreamingResponse
from starlette.routing import Route, WebSocketRoute


@contextlib.asynccontextmanager
async def lifespan(app):
    yield {"name": "x"}


async def home(request):
    return PlainTextResponse(request.url_for("page", name=request.state.name).path)


async def page(request):
    return PlainTextResponse(f"page {request.path_params['name']}")


async def go(request):
    return RedirectResponse(request.url_for("page", name="there").path, 302)


async def slash(request):
    return PlainTextResponse("with a slash")


async def count(request):
    request.session["count"] = request.session.get("count", 0) + 1
    return PlainTextResponse(str(request.session["count"]))


async def form(request):
    async with request.form() as given:
        size = len(await given["file"].read())
        return PlainTextResponse(f"{given['name']} {given['file'].filename} {size}")


async def stream(request):
    async def parts():
        for n in range(3):
            yield f"part {n}\n"

    return StreamingResponse(parts(), media_type="text/plain")


async def chat(socket):
    await socket.accept(subprotocol="chat")
    async for text in socket.iter_text():
        await socket.send_json({"name": socket.path_params["name"], "said": text})


async def broken(request):
    raise ValueError("as asked")


app = Starlette(
    routes=[
        Route("/", home),
        Route("/page/{name}", page, name="page"),
        Route("/go", go),
        Route("/slash/", slash),
        Route("/count", count),
        Route("/form", form, methods=["POST"]),
        Route("/stream", stream),
        Route("/raise", broken),
        WebSocketRoute("/chat/{name}", chat),
    ],
    middleware=[Middleware(SessionMiddleware, secret_key="a test's")],
    lifespan=lifespan,
)
