"""`--model`, `--base-url` and `--key-file`: which models are asked where, and which key goes to whom."""

from __future__ import annotations

import os
from collections.abc import Sequence

from cuda_l1.api.addresses import check_address
from cuda_l1.api.inline import parse_inline
from cuda_l1.config import LlmSettings, ModelSettings
from cuda_l1.endpoint import KEY_VARIABLE, key_for, place_of
from cuda_l1.endpoint.keys import NO_KEY, URL_VARIABLE, default_url, has_default_key, is_same_place, key_is_for
from cuda_l1.errors import UsageError

_GIVE_KEY = f"key_file=FILE or key_env={KEY_VARIABLE} behind a model's name gives it one"


def named_models(texts: Sequence[str], base_url: str | None, key_file: str | None) -> tuple[ModelSettings, ...]:
    """The models of `--model`. The command's key file is for the command's address: a model with an address of its own
    gets it only where that is the same place, or where no model is at the command's address.

    Raises UsageError: no address, or a setting that is none.
    """
    own = [_own_settings(text) for text in texts]
    where = None if all("url" in named for named in own) else _address(base_url)
    models = []
    for text, named in zip(texts, own, strict=True):
        given: dict[str, str | None] = {} if "url" in named else {"url": where}
        is_here = "url" not in named or where is None or is_same_place(named["url"], where)
        if key_file and is_here and not named.keys() & {"key_file", "key_env"}:
            given["key_file"] = key_file
        models.append(parse_inline("--model", text, ModelSettings, "name", given=given))
        check_address(f"--model {text}: url" if "url" in named else "--base-url", models[-1].url)
    return tuple(models)


def _own_settings(text: str) -> dict[str, str]:
    """What a `--model` says itself, by the names of settings."""
    parts = (part.partition("=") for part in text.split(",")[1:])
    return {name.strip(): value.strip() for name, _, value in parts}


def _address(given: str | None) -> str:
    """`given`, else $OPENAI_BASE_URL, else OpenAI's own where there is a key. Raises UsageError."""
    if given or os.environ.get(URL_VARIABLE) or os.environ.get(KEY_VARIABLE):
        return given or default_url()
    raise UsageError(f"where is the model? Set ${URL_VARIABLE} or give --base-url, e.g. http://localhost:8000/v1")


def key_of(model: ModelSettings) -> str:
    """What is sent as a model's key. Raises UsageError."""
    return key_for(model.url, file=model.key_file, variable=model.key_env)


def advice(model: ModelSettings, key: str) -> str:
    """What to do where an endpoint refuses `key`: where it came from, or how to give one."""
    if key != NO_KEY:
        return f"; it is from {f'key file {model.key_file}' if model.key_file else f'${model.key_env or KEY_VARIABLE}'}"
    if model.key_env or has_default_key(model.url):
        return f"; set ${KEY_VARIABLE}, or give --key-file FILE"
    return f"; {key_is_for()}; {_GIVE_KEY}, --key-file FILE those at --base-url"


def unkeyed(settings: LlmSettings) -> str | None:
    """A line where there is a key and a model is asked without one, since the key is for another place."""
    asked = settings.models
    without = [each for each in asked if not (each.key_file or each.key_env or has_default_key(each.url))]
    if not without or not (os.environ.get(KEY_VARIABLE) or any(each.key_file for each in asked)):
        return None
    names = ", ".join(f"{model.name} at {place_of(model.url)}" for model in without)
    return f"no key is sent to {names}: {key_is_for()}; {_GIVE_KEY}"
