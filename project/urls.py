"""The addresses of the project: the admin and the API.

The API's own addresses stand in `stateknot/api/urls.py`.
"""

from django.contrib import admin
from django.urls import include, path
from django.views.generic import RedirectView

urlpatterns = [
    path("admin/", admin.site.urls),
    path("stateknot/api/v1/", include("stateknot.api.urls")),
    path("", RedirectView.as_view(url="/admin/stateknot/")),
]
