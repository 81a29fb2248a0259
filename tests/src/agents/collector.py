"""Replaces a Langfuse server. Prints its port, and then each request with its spans, as lines of JSON."""
import gzip
import http.server
import json
import sys

from google.protobuf.json_format import MessageToDict
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest


class Collector(http.server.BaseHTTPRequestHandler):
    def do_POST(self):
        body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
        if self.headers.get("Content-Encoding") == "gzip":
            body = gzip.decompress(body)
        spans = []
        if self.path.endswith("/v1/traces"):
            for resource in ExportTraceServiceRequest.FromString(body).resource_spans:
                for scope in resource.scope_spans:
                    spans += [MessageToDict(span) for span in scope.spans]
        print(json.dumps({"path": self.path, "authorization": self.headers.get("Authorization"), "spans": spans}), flush=True)
        self.reply({})

    def do_GET(self):
        self.reply({"data": []})

    def reply(self, value):
        body = json.dumps(value).encode()
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *words):
        pass


server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Collector)
print(json.dumps({"port": server.server_port}), flush=True)
server.serve_forever()
