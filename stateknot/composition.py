"""Public names of closed definitions and composition; Django is not needed.

Everything is defined in the kernel; read `kernel/definition.py` and
`kernel/composition.py` next.
"""

from stateknot.kernel.composition import (
    GraphComposition,
    GraphSubgraphCall,
    NodeSource,
    SharedStateSubgraph,
)
from stateknot.kernel.definition import (
    GraphDefinition,
    GraphIdentity,
    GraphLimits,
    GraphNode,
    GraphRoute,
    ReducerReference,
    SchemaReference,
)
from stateknot.kernel.schema_document import schema_reference

__all__ = [
    "GraphComposition",
    "GraphDefinition",
    "GraphIdentity",
    "GraphLimits",
    "GraphNode",
    "GraphRoute",
    "GraphSubgraphCall",
    "NodeSource",
    "ReducerReference",
    "SchemaReference",
    "SharedStateSubgraph",
    "schema_reference",
]
