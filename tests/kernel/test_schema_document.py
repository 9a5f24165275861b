"""Schema documents: what changes the digest, and golden digests that must not move."""

from __future__ import annotations

import json
from datetime import datetime, timedelta
from decimal import Decimal
from enum import Enum
from typing import Annotated, Any, Literal
from uuid import UUID

import pytest
from pydantic import BaseModel, ConfigDict, Field

from stateknot.kernel.canonical import canonical_bytes
from stateknot.kernel.identifiers import check_digest
from stateknot.kernel.schema_document import schema_document, schema_reference
from tests.kernel.graph_samples import composition_vectors, refused

URI = "https://example.com/schemas/sample"


class Colour(Enum):
    red = "r"
    blue = "b"


class Leaf(BaseModel):
    colour: Colour = Colour.red
    weight: Annotated[float, Field(gt=0)] = 1.0


class Tree(BaseModel):
    leaves: list[Leaf] = []
    branches: list[Tree] = []


class Everything(BaseModel):
    """One field of each kind that states are made of."""

    text: str
    number: int = Field(ge=0, le=2**63 - 1)
    ratio: float | None = None
    exact: Decimal = Decimal("1.10")
    moment: datetime
    length: timedelta = timedelta(seconds=1)
    key: UUID
    tree: Tree
    by_name: dict[str, Leaf] = {}
    pair: tuple[int, str] = (1, "a")
    tags: set[str] = set()
    choice: Literal["b", "a"] = "a"
    anything: Any = None


def _digest(model: type[BaseModel]) -> str:
    return schema_reference(model, id=URI, version="1.0.0").digest


def test_digest_of_plain_model_is_golden() -> None:
    """The document of the counter example is the recorded vector, key by key."""
    vector = composition_vectors()["counter_review_example"]

    class Counter(BaseModel):
        """A docstring that must not matter."""

        model_config = ConfigDict(extra="forbid", title="Review")
        count: int = Field(ge=0, le=3, description="d", examples=[1], title="T")

    recorded = vector["inputs"]["schema_document"]
    assert schema_document(Counter, id=recorded["$id"]) == recorded
    reference = schema_reference(Counter, id=recorded["$id"], version="1.0.0")
    assert reference.digest == vector["expected"]["schema_document_digest"]


@pytest.mark.parametrize(
    ("model", "golden"),
    [
        (
            Leaf,
            "2c06353730a68445341ba64161d6a89907f4bd8e3c2b776ba0418f6b8c8f6489",
        ),
        (
            Tree,
            "dfd92c97ff55914037ee7937926abdd6ab4dab377391499ed97c4b354337926b",
        ),
        (
            Everything,
            "8e66402160684c6e6a121dc72e94208dc4f5e909076aa82c5d5bb9714c11ac46",
        ),
    ],
)
def test_digest_of_rich_model_is_golden(model: type[BaseModel], golden: str) -> None:
    """A pydantic upgrade that fails here would make new revisions of every graph.

    Extend the normaliser until the digests are these again; never replace them.
    """
    assert _digest(model) == f"sha256:{golden}"


def test_document_has_no_cosmetic_words() -> None:
    text = json.dumps(schema_document(Everything, id=URI))
    for word in ('"title"', '"description"', "Leaf", "Tree", "Colour", "One field"):
        assert word not in text


def test_field_called_like_an_annotation_is_kept() -> None:
    class Book(BaseModel):
        title: str
        description: str = "title"

    document = schema_document(Book, id=URI)
    assert document["properties"]["title"] == {"type": "string"}
    assert document["properties"]["description"]["default"] == "title"


def test_default_that_holds_a_title_is_kept() -> None:
    class Page(BaseModel):
        head: dict[str, Any] = {"title": "Home", "description": ""}

    default = schema_document(Page, id=URI)["properties"]["head"]["default"]
    assert default == {"title": "Home", "description": ""}


def test_names_and_order_of_the_source_do_not_matter() -> None:
    """Class names, docstrings, the order of fields, literals and enum members."""

    class Inner(BaseModel):
        choice: Literal["x", "y"]
        size: int

    class Renamed(BaseModel):
        """Says the same."""

        size: int = Field(description="in bytes")
        choice: Literal["y", "x"]

    class Before(BaseModel):
        first: Inner
        second: list[Inner] = []

    class After(BaseModel):
        second: list[Renamed] = Field([], title="Second")
        first: Renamed = Field(description="a sibling of the reference")

    assert _digest(Before) == _digest(After)


def test_recursive_model_has_a_finite_document() -> None:
    document = schema_document(Tree, id=URI)
    assert document["$ref"] == "#/$defs/0"
    branches = document["$defs"]["0"]["properties"]["branches"]
    assert branches["items"] == {"$ref": "#/$defs/0"}
    assert document["$defs"].keys() == {"0", "1", "2"}


def test_allof_of_one_is_that_one() -> None:
    """Older pydantic wraps a reference with siblings so; the contract is the same."""

    class Plain(BaseModel):
        leaf: Leaf = Field(description="x")

    class Wrapped(BaseModel):
        leaf: Leaf

        @classmethod
        def __get_pydantic_json_schema__(cls, schema: Any, handler: Any) -> Any:
            document = handler.resolve_ref_schema(handler(schema))
            inner = document["properties"]["leaf"]
            document["properties"]["leaf"] = {"allOf": [inner]}
            return document

    assert _digest(Wrapped) == _digest(Plain)


def test_changed_contract_changes_the_digest() -> None:
    """Type, constraint, default, optionality, name: each is another contract."""

    class Base(BaseModel):
        a: int = 1

    class Type(BaseModel):
        a: float = 1

    class Bound(BaseModel):
        a: int = Field(1, ge=0)

    class Default(BaseModel):
        a: int = 2

    class Required(BaseModel):
        a: int

    class Name(BaseModel):
        b: int = 1

    class Exact(BaseModel):
        a: Decimal = Decimal(1)

    class ExactBound(BaseModel):
        a: Decimal = Field(Decimal(1), max_digits=5)

    models = [Base, Type, Bound, Default, Required, Name, Exact, ExactBound]
    assert len({_digest(model) for model in models}) == len(models)


def test_reference_names_id_and_version() -> None:
    reference = schema_reference(Leaf, id=URI, version="2.1.0")
    assert (reference.id, reference.version) == (URI, "2.1.0")
    assert check_digest(reference.digest) == []


def test_bound_past_2_53_has_a_canonical_form() -> None:
    number = schema_document(Everything, id=URI)["properties"]["number"]
    assert number["maximum"] == "9223372036854775807"
    assert canonical_bytes(number)


def test_default_without_a_json_form_is_left_out() -> None:
    class Holder(BaseModel):
        value: Any = object()

    assert schema_document(Holder, id=URI)["properties"] == {"value": {}}


def test_field_without_a_schema_is_refused() -> None:
    class Opaque:
        pass

    class Holder(BaseModel):
        model_config = ConfigDict(arbitrary_types_allowed=True)
        value: Opaque

    with refused("SchemaUnavailable") as raised:
        schema_document(Holder, id=URI)
    assert "Holder" in raised.value.message
