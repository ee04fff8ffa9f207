"""An OpenAI-compatible server on this machine that says what a test wants it to say, well or badly.

In a test: `with serving("a reply", Answer(status=429)) as server:` and `server.url`; by hand:
`python tests/llm_server --script FILE`. It answers `/v1/models` and `/v1/chat/completions`, also over TLS and as a
proxy for any address, and tells at `/stats` what it was asked.
"""

from llm_server.answers import DRIP, NEVER, Answer, Reply, Request
from llm_server.script import Script, load
from llm_server.server import LlmServer, serving

__all__ = ["DRIP", "NEVER", "Answer", "LlmServer", "Reply", "Request", "Script", "load", "serving"]
