"""Talking to language models at OpenAI-compatible endpoints: one question or many at once, and one line for a failure.

`Chat` asks asynchronously, `Background` runs it beside other work, `Endpoint` asks one question and waits. The package
`openai` does the talking: it honours HTTPS_PROXY, NO_PROXY, SSL_CERT_FILE and SSL_CERT_DIR, tries again what may pass,
and waits as long as Retry-After says, up to two minutes.
"""

from __future__ import annotations

from cuda_l1.endpoint.asking import Endpoint
from cuda_l1.endpoint.background import Background
from cuda_l1.endpoint.chat import Chat, place_of
from cuda_l1.endpoint.completion import Answer
from cuda_l1.endpoint.faults import one_line
from cuda_l1.endpoint.keys import KEY_VARIABLE, key_for, read_key

__all__ = ["KEY_VARIABLE", "Answer", "Background", "Chat", "Endpoint", "key_for", "one_line", "place_of", "read_key"]
