"""The app of Flask, with the standard library's check of each side of WSGI between it and the server
(`wsgiref.validate`), and as Django's adapter makes an ASGI app of it (`asgiref`)."""

from wsgiref.validate import validator

from asgiref.wsgi import WsgiToAsgi
from flask_app import app

validated = validator(app)
# The adapter closes no answer, which the check would tell of.
adapted = WsgiToAsgi(app)
