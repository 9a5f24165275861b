"""Settings of the project, read from the environment.

Owns: what differs between machines, each with a default that works for development.
Production sets SECRET_KEY, DEBUG=False, ALLOWED_HOSTS and DATABASE_URL. The engine's
own settings are `STATEKNOT`; read `stateknot/conf.py` next.
"""

import contextlib
from pathlib import Path
from typing import Any

import environ
from django.core.exceptions import ImproperlyConfigured

BASE_DIR = Path(__file__).resolve().parent.parent
VAR_DIR = BASE_DIR / "var"

env = environ.Env()


def _secret_key(debug: bool) -> str:
    key: str = env("SECRET_KEY", default="")
    if key:
        return key
    if debug:
        return "development-only-" + "0" * 40
    raise ImproperlyConfigured(
        "SECRET_KEY is not set and DEBUG is off: set SECRET_KEY to 50 random characters"
    )


def _database(url: str) -> dict[str, Any]:
    """Return Django's entry for a database URL, with what each database needs."""
    entry: dict[str, Any] = env.db_url_config(url)
    if entry["ENGINE"] == "django.db.backends.sqlite3":
        # IMMEDIATE takes the write lock at BEGIN, where waiting for it is possible;
        # WAL lets the admin read while a worker writes.
        entry["OPTIONS"] = {
            "transaction_mode": "IMMEDIATE",
            "timeout": 20,
            "init_command": "PRAGMA journal_mode=WAL; PRAGMA synchronous=NORMAL; "
            "PRAGMA busy_timeout=20000;",
        }
        # In memory, other threads and processes of a test would see no rows.
        entry["TEST"] = {"NAME": f"{entry['NAME']}.test"}
        # Where that cannot be made, opening the database says so; settings must load.
        with contextlib.suppress(OSError):
            Path(entry["NAME"]).parent.mkdir(parents=True, exist_ok=True)
    else:
        entry["CONN_MAX_AGE"] = 600
        entry["CONN_HEALTH_CHECKS"] = True
    return entry


DEBUG: bool = env.bool("DEBUG", default=True)
SECRET_KEY = _secret_key(DEBUG)
ALLOWED_HOSTS: list[str] = env.list(
    "ALLOWED_HOSTS", default=["localhost", "127.0.0.1", "[::1]"]
)
CSRF_TRUSTED_ORIGINS: list[str] = env.list("CSRF_TRUSTED_ORIGINS", default=[])

# Set HTTPS=True behind TLS; over plain HTTP secure cookies would end every login.
HTTPS: bool = env.bool("HTTPS", default=False)
SESSION_COOKIE_SECURE = CSRF_COOKIE_SECURE = HTTPS

INSTALLED_APPS = [
    "django.contrib.admin",
    "django.contrib.auth",
    "django.contrib.contenttypes",
    "django.contrib.sessions",
    "django.contrib.messages",
    "whitenoise.runserver_nostatic",
    "django.contrib.staticfiles",
    "rest_framework",
    "drf_spectacular",
    "django_q",
    "stateknot.apps.StateKnotConfig",
    "project.audit",
    "project.examples",
]

MIDDLEWARE = [
    "django.middleware.security.SecurityMiddleware",
    "whitenoise.middleware.WhiteNoiseMiddleware",
    "project.content_security.ContentSecurityPolicyMiddleware",
    "django.contrib.sessions.middleware.SessionMiddleware",
    "django.middleware.common.CommonMiddleware",
    "django.middleware.csrf.CsrfViewMiddleware",
    "django.contrib.auth.middleware.AuthenticationMiddleware",
    "django.contrib.messages.middleware.MessageMiddleware",
    "django.middleware.clickjacking.XFrameOptionsMiddleware",
]

ROOT_URLCONF = "project.urls"
WSGI_APPLICATION = "project.wsgi.application"
ASGI_APPLICATION = "project.asgi.application"

TEMPLATES = [
    {
        "BACKEND": "django.template.backends.django.DjangoTemplates",
        "DIRS": [BASE_DIR / "templates"],
        "APP_DIRS": True,
        "OPTIONS": {
            "context_processors": [
                "django.template.context_processors.request",
                "django.contrib.auth.context_processors.auth",
                "django.contrib.messages.context_processors.messages",
            ],
        },
    },
]

DATABASES = {
    "default": _database(
        env("DATABASE_URL", default=f"sqlite:///{VAR_DIR / 'db.sqlite3'}")
    )
}
DEFAULT_AUTO_FIELD = "django.db.models.BigAutoField"

AUTH_PASSWORD_VALIDATORS = [
    {"NAME": f"django.contrib.auth.password_validation.{name}"}
    for name in (
        "UserAttributeSimilarityValidator",
        "MinimumLengthValidator",
        "CommonPasswordValidator",
        "NumericPasswordValidator",
    )
]

LANGUAGE_CODE = "en"
TIME_ZONE = "UTC"
USE_I18N = True
USE_TZ = True

# whitenoise serves from the apps' own folders, so nothing has to be collected first.
STATIC_URL = "static/"
STATIC_ROOT: str | None = env("STATIC_ROOT", default=None)
WHITENOISE_USE_FINDERS = True

# The browsable API needs inline script and style, which the policy refuses.
REST_FRAMEWORK = {
    "DEFAULT_AUTHENTICATION_CLASSES": [
        "rest_framework.authentication.SessionAuthentication",
    ],
    "DEFAULT_PERMISSION_CLASSES": ["rest_framework.permissions.IsAuthenticated"],
    "DEFAULT_RENDERER_CLASSES": ["rest_framework.renderers.JSONRenderer"],
    "DEFAULT_SCHEMA_CLASS": "drf_spectacular.openapi.AutoSchema",
}
SPECTACULAR_SETTINGS = {"TITLE": "StateKnot", "VERSION": "1", "OAS_VERSION": "3.1.0"}

# Only PostgreSQL can tell a waiting worker of a new message; elsewhere it asks often.
IS_POSTGRES = DATABASES["default"]["ENGINE"] == "django.db.backends.postgresql"

# Web and workers read the same values: django-q2 stamps some of them on the message
# when it is sent. `retry` counts from the moment a cluster takes a message, so it lies
# above `timeout` and the queue in memory is short.
Q_CLUSTER = {
    "name": "stateknot",
    "orm": "default",
    "workers": env.int("WORKERS", default=2),
    "queue_limit": 2,
    "bulk": 1,
    "timeout": 300,
    "retry": 330,
    "max_attempts": 1,
    "ack_failures": True,
    "save_limit": -1,
    "recycle": 500,
    "max_rss": 512_000,
    "guard_cycle": 0.5,
    "poll": 5 if IS_POSTGRES else 0.5,
    "catch_up": False,
}
if IS_POSTGRES:
    Q_CLUSTER["broker_class"] = "stateknot.broker.NotifyingBroker"

LOGGING = {
    "version": 1,
    "disable_existing_loggers": False,
    "formatters": {
        "line": {"format": "%(asctime)s %(levelname)s %(name)s %(message)s"},
    },
    "handlers": {"console": {"class": "logging.StreamHandler", "formatter": "line"}},
    "root": {"handlers": ["console"], "level": env("LOG_LEVEL", default="INFO")},
}
