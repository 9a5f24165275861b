"""What every view of the API shares, so that an installing project sets nothing.

Authentication is the project's (`DEFAULT_AUTHENTICATION_CLASSES`); JSON in and out, the
permissions by method and the form of refusals are ours.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar

from rest_framework.exceptions import NotFound, PermissionDenied
from rest_framework.permissions import IsAuthenticated
from rest_framework.renderers import JSONRenderer
from rest_framework.views import APIView

from stateknot.api.parsers import BoundedJSONParser
from stateknot.api.problems import handle_problem
from stateknot.api.schema_rules import ProblemSchema
from stateknot.selectors.access import may

if TYPE_CHECKING:
    from collections.abc import Callable

    from rest_framework.request import Request
    from rest_framework.response import Response

    from stateknot.models import Thread

VIEW = "stateknot.view_run"


def require_permissions(request: Request, *names: str) -> None:
    """Refuse a user who lacks one of `names`. Raises PermissionDenied naming it."""
    for name in names:
        if not request.user.has_perm(name):
            raise PermissionDenied(f"this needs the permission {name}")


def require_allowed(request: Request, thread: Thread, *verbs: str) -> None:
    """Refuse a user whom the object rules do not let do `verbs` to a thread seen."""
    for verb in verbs:
        if not may(request.user, verb, thread):
            raise PermissionDenied(f"{verb} is not allowed to you on this thread")


class MayCall(IsAuthenticated):
    """Asks for a logged-in user with the permissions that the view has by method."""

    def has_permission(self, request: Request, view: Any) -> bool:
        """Whether the call may go on; a missing permission is named."""
        if not super().has_permission(request, view):
            return False
        method = "GET" if request.method == "HEAD" else str(request.method)
        require_permissions(request, *view.permissions.get(method, ()))
        return True


class ProblemsMixin:
    """Refuses in problem documents."""

    def get_exception_handler(self) -> Callable[..., Response | None]:
        """Our own handler, whatever the project's settings name."""
        return handle_problem

    def get_authenticate_header(self, request: Request) -> str:
        """A challenge in any case: who is not logged in gets 401, not 403."""
        inherited: Any = super()
        return inherited.get_authenticate_header(request) or "Session"


class Endpoint(ProblemsMixin, APIView):
    """The base of our views; `permissions` maps a method to what it needs.

    `tag` groups the operations in the OpenAPI document; `is_conditional` says that they
    want an If-Match.
    """

    tag: ClassVar[str] = ""
    is_conditional: ClassVar[bool] = False
    permissions: ClassVar[dict[str, tuple[str, ...]]] = {"GET": (VIEW,)}
    permission_classes = [MayCall]
    renderer_classes = [JSONRenderer]
    parser_classes = [BoundedJSONParser]
    http_method_names = ["get", "head", "post", "patch"]
    schema = ProblemSchema()


class NoSuchAddress(Endpoint):
    """Answers for every address that is none of the API's."""

    permissions: ClassVar[dict[str, tuple[str, ...]]] = {}

    def initial(self, request: Request, *args: Any, **kwargs: Any) -> None:
        """Refuse, whatever the method."""
        super().initial(request, *args, **kwargs)
        raise NotFound(f"{request.path} is no address of this API; see its schema")
