"""Flask: url_for, redirects, a signed session, a form, an upload, a streamed page, static files."""

from flask import Flask, Response, redirect, request, session, url_for

app = Flask(__name__, static_folder="static")
app.secret_key = "a test's"


@app.get("/")
def home():
    return url_for("page", name="x")


@app.get("/page/<name>")
def page(name):
    return f"page {name}"


@app.get("/go")
def go():
    return redirect(url_for("page", name="there"))


@app.get("/slash/")
def slash():
    return "with a slash"


@app.get("/count")
def count():
    session["count"] = session.get("count", 0) + 1
    return str(session["count"])


@app.post("/form")
def form():
    file = request.files["file"]
    return f"{request.form['name']} {file.filename} {len(file.read())}"


@app.get("/stream")
def stream():
    return Response((f"part {n}\n" for n in range(3)), mimetype="text/plain")


@app.get("/raise")
def broken():
    raise ValueError("as asked")
