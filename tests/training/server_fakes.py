"""A stand-in for `vllm serve` over HTTP, which can end and be started again, and for TRL's client of one, which needs
vLLM and a GPU. It writes replies by chance and notes which weights it has. It makes more of the tokens of a reply than
a policy does, and next to nothing of its last one: whoever multiplies its differences from the policy's probabilities
gets figures that are far above any cap."""

from __future__ import annotations

import hashlib
import json
import random
import threading
import urllib.error
import urllib.request
from collections.abc import Iterable, Sequence
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

OWN = "those that it began with"


class StandIn:
    """A server at one port, up or down."""

    def __init__(self, replies: Sequence[Sequence[int]]) -> None:
        """`replies` are the token ids that it chooses from."""
        self.replies, self.draw = replies, random.Random(0)
        self.weights, self.has_joined = OWN, False
        self.wrote_with: list[str] = []
        """A digest of the weights of each request for replies that it answered."""
        self.fates: dict[str, list[str]] = {}
        """By the way in: what becomes of the next requests, `dies`, `stays away` or `500`; then they are answered."""
        self._http = ThreadingHTTPServer(("127.0.0.1", 0), self._handler())
        self.port = int(self._http.server_address[1])
        self.url = f"http://127.0.0.1:{self.port}"
        threading.Thread(target=self._http.serve_forever, args=(0.01,), daemon=True).start()

    def end(self) -> None:
        self._http.shutdown()
        self._http.server_close()

    def start(self) -> None:
        """With weights of its own, and nobody who sends others."""
        self.weights, self.has_joined = OWN, False
        self._http = ThreadingHTTPServer(("127.0.0.1", self.port), self._handler())
        threading.Thread(target=self._http.serve_forever, args=(0.01,), daemon=True).start()

    def answer(self, path: str, body: dict[str, Any]) -> tuple[int, Any]:
        if path == "/init_weight_transfer_engine":
            self.has_joined = True
        if path == "/update_weights":
            if not self.has_joined:
                return 500, "no group"
            self.weights = body["digest"]
        if path == "/v1/completions":
            self.wrote_with.append(self.weights)
            replies = [self.draw.choice(self.replies) for _ in body["prompt"] for _ in range(body["n"])]
            return 200, [[reply, self._logprobs(reply)] for reply in replies]
        return 200, {}

    def _logprobs(self, reply: Sequence[int]) -> list[float]:
        return [*(-self.draw.uniform(0.1, 1) for _ in reply[1:]), -self.draw.uniform(10, 12)]

    def _handler(self) -> type[BaseHTTPRequestHandler]:
        server = self

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                self.do_POST()

            def do_POST(self) -> None:
                body = json.loads(self.rfile.read(int(self.headers.get("Content-Length", 0))) or b"{}")
                fate = (server.fates.get(self.path) or [""]).pop(0)
                if fate in ("dies", "stays away"):
                    threading.Thread(target=server._die, args=(fate == "dies",), daemon=True).start()
                    self.close_connection = True
                    return
                status, found = (500, "EngineDeadError") if fate == "500" else server.answer(self.path, body)
                self.send_response(status)
                self.end_headers()
                self.wfile.write(json.dumps(found).encode())

            def log_message(self, *_: Any) -> None:
                pass

        return Handler

    def _die(self, comes_back: bool) -> None:
        self.end()
        if comes_back:
            threading.Timer(0.3, self.start).start()


class Client:
    """As TRL's `VLLMClient` asks and raises. Weights travel as their digest."""

    def __init__(self, base_url: str, **_: Any) -> None:
        self.base_url = base_url
        self._post("/health")

    def get_server_info(self) -> dict[str, Any]:
        return {"model_config": {"logprobs_mode": "processed_logprobs"}}

    def init_communicator(self, device: Any = 0) -> None:
        self._post("/init_weight_transfer_engine")

    def close_communicator(self) -> None:
        pass

    def update_named_params(self, metadata: Any, named_params: Iterable[tuple[str, Any]]) -> None:
        whole = hashlib.sha256()
        for _, weight in named_params:
            whole.update(weight.detach().numpy().tobytes())
        self._post("/update_weights", digest=whole.hexdigest())

    def reset_prefix_cache(self) -> None:
        self._post("/reset_prefix_cache")

    def generate(self, prompts: Sequence[Sequence[int]], n: int, **_: Any) -> dict[str, Any]:
        written = self._post("/v1/completions", prompt=[list(each) for each in prompts], n=n)
        replies = [reply for reply, _ in written]
        return {
            "prompt_ids": prompts,
            "completion_ids": replies,
            "logprobs": [[[logprob] for logprob in logprobs] for _, logprobs in written],
            "logprob_token_ids": [[[token] for token in reply] for reply in replies],
        }

    def _post(self, path: str, **body: Any) -> Any:
        try:
            with urllib.request.urlopen(f"{self.base_url}{path}", json.dumps(body).encode(), timeout=10) as answer:
                return json.loads(answer.read())
        except urllib.error.HTTPError as error:
            with error:
                raise Exception(f"Request failed: {error.code}, {error.read().decode()}") from error
