"""OTLP in JSON, read by the protobuf classes of opentelemetry-proto."""

from google.protobuf import json_format
from opentelemetry.proto.collector.trace.v1 import trace_service_pb2


def decoded(text):
    """The request that this is. Fields that the format does not have, and ids that are no bytes, are
    refused."""
    request = trace_service_pb2.ExportTraceServiceRequest()
    for resource in text["resourceSpans"]:
        for span in resource["scopeSpans"][0]["spans"]:
            for name in ("traceId", "spanId", "parentSpanId"):
                # The JSON of OTLP has ids in hexadecimal, that of protobuf in base64.
                if name in span:
                    own = bytes.fromhex(span[name])
                    assert len(own) in (8, 16), span[name]
                    span[name] = json_format.base64.b64encode(own).decode()
    json_format.ParseDict(text, request)
    return request
