"""A WebSocket that says what it hears, for servers of ASGI."""


async def app(scope, receive, send):
    if scope["type"] != "websocket":
        if scope["type"] == "http":
            await send({"type": "http.response.start", "status": 200, "headers": []})
            await send({"type": "http.response.body", "body": b"<li>row 19</li>"})
        return
    await receive()
    await send({"type": "websocket.accept"})
    while True:
        event = await receive()
        if event["type"] == "websocket.disconnect":
            return
        await send({"type": "websocket.send", "text": event["text"]})
