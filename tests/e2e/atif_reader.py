# SPDX-License-Identifier: Apache-2.0
"""atif_reader.py FILE...: holds trajectories against PyPI's model of ATIF, and has Harbor's converter make spans of them."""
import json
import sys

import atif
from harbor_atif2otel import convert_trajectory, validate_trajectory

# The converter's list of versions ends at 1.7.
NOT_KNOWN_YET = "unsupported schema_version: ATIF-v1.8"


def spans_of(document):
    converted = convert_trajectory(document)
    return [span for scope in converted.scope_spans for span in scope.spans]


for path in sys.argv[1:]:
    with open(path, encoding="utf-8") as file:
        document = json.load(file)
    atif.Trajectory.model_validate(document)
    assert [issue for issue in validate_trajectory(document) if issue != NOT_KNOWN_YET] == [], validate_trajectory(document)
    calls = sum(len(step.get("tool_calls", [])) for step in document["steps"])
    agent_steps = sum(step["source"] == "agent" for step in document["steps"])
    spans = spans_of(document)
    assert len(spans) >= 1 + calls + agent_steps - sum(step.get("llm_call_count") == 0 for step in document["steps"]), len(spans)
    assert len({span.trace_id for span in spans}) == 1
