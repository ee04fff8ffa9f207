"""`python tests/llm_server --script FILE [--port N]`: serves until it is interrupted."""

from __future__ import annotations

import argparse
import asyncio
import sys
import tomllib
from pathlib import Path

sys.path[0] = str(Path(__file__).resolve().parents[1])  # this folder itself, when it is run

from llm_server import LlmServer, load  # noqa: E402


async def serve(server: LlmServer, port: int) -> None:
    listening = await server.start(port)
    sys.stderr.write(f"serving {', '.join(server.script.models)} at {server.url}; Ctrl-C ends it\n")
    async with listening:
        await listening.serve_forever()


def main() -> None:
    parser = argparse.ArgumentParser(prog="llm_server", description="Plays a scripted language model.")
    parser.add_argument("--script", type=Path, required=True, help="TOML: rules, and an [[answer]] for each answer")
    parser.add_argument("--port", type=int, default=0, help="0, the default: any free one")
    chosen = parser.parse_args()
    try:
        server = LlmServer(load(chosen.script))
    except (OSError, TypeError, tomllib.TOMLDecodeError) as error:
        parser.error(f"{chosen.script}: {error}")
    try:
        asyncio.run(serve(server, chosen.port))
    except KeyboardInterrupt:
        sys.stderr.write(f"answered {len(server.asked)} questions, at most {server.most_in_flight} at a time\n")
    except OSError as error:
        parser.error(str(error))


if __name__ == "__main__":
    main()
