"""Django in one file: reverse, redirects, a signed session, a form, an upload, a streamed page."""

import os

import django
from django.conf import settings
from django.core.asgi import get_asgi_application
from django.core.wsgi import get_wsgi_application
from django.http import HttpResponse, HttpResponseRedirect, StreamingHttpResponse
from django.urls import path, reverse

settings.configure(
    ALLOWED_HOSTS=["*"],
    BASE_DIR=os.path.dirname(os.path.abspath(__file__)),
    MIDDLEWARE=[
        "django.middleware.security.SecurityMiddleware",
        "django.contrib.sessions.middleware.SessionMiddleware",
        "django.middleware.common.CommonMiddleware",
    ],
    INSTALLED_APPS=["django.contrib.sessions"],
    LOGGING={
        "version": 1,
        "disable_existing_loggers": False,
        "handlers": {"console": {"class": "logging.StreamHandler"}},
        "root": {"handlers": ["console"]},
    },
    ROOT_URLCONF=__name__,
    SECRET_KEY="a test's",
    SESSION_ENGINE="django.contrib.sessions.backends.signed_cookies",
)
django.setup()


def home(request):
    return HttpResponse(reverse("page", args=["x"]))


def page(request, name):
    return HttpResponse(f"page {name}")


def go(request):
    return HttpResponseRedirect(reverse("page", args=["there"]))


def slash(request):
    return HttpResponse("with a slash")


def count(request):
    request.session["count"] = request.session.get("count", 0) + 1
    return HttpResponse(str(request.session["count"]))


def form(request):
    file = request.FILES["file"]
    return HttpResponse(f"{request.POST['name']} {file.name} {len(file.read())}")


def stream(request):
    return StreamingHttpResponse((f"part {n}\n" for n in range(3)), content_type="text/plain")


def broken(request):
    raise ValueError("as asked")


urlpatterns = [
    path("", home),
    path("page/<str:name>", page, name="page"),
    path("go", go),
    path("slash/", slash),
    path("count", count),
    path("form", form),
    path("stream", stream),
    path("raise", broken),
]

application = get_wsgi_application()
asynchronous = get_asgi_application()
