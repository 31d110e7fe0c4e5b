"""What looks like a secret is gone from all that is kept; what only looks like the code of a secret stays as it is."""

from __future__ import annotations

import base64
import io
import json
import logging
import re
import sys
from html import escape
from itertools import chain
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from growth import grows_in_proportion, parts
from hypothesis import given
from hypothesis import strategies as st

from rlm_loop import ToolLoopAgent
from rlm_loop.models import OpenAICompatibleModel, ScriptedModel
from rlm_loop.models.base import ModelError
from rlm_loop.report import run_page
from rlm_loop.report.notebook.live import LiveView
from rlm_loop.traces import Trace, read
from rlm_loop.traces.redact import REDACTED, kinds, redactor

ROOT = Path(__file__).parents[2]
ENVIRON = {
    "MY_API_KEY": "hunter2hunter2",
    "AWS_SESSION_TOKEN": 'quote"and\nline9',
    "PGPASSWORD": "correct-horse-battery-staple",
}
FILLING = {"": "aB3dE6gH9jK2mN5pQ8rS1tU4vW7xY0z", "x": "0123456789abcdef", "A": "ABC3DEF7GHI2JKLM5NOP"}


def filled(example: str) -> str:
    """Return an example with `{20}` and the like written out."""
    return re.sub(r"\{([xA]?)(\d+)\}", lambda m: (FILLING[m[1]] * 9)[: int(m[2])], example)


#: By kind and example: the text, with «» around what must go.
GONE = {
    f"{kind.name}: {example.replace('*', mark)}": filled(example.replace("*", mark))
    for kind in kinds()
    for example in kind.gone
    for mark in (kind.marks.split() if "*" in example else [""])
}
GONE = {name: text if "«" in text else f"«{text}»" for name, text in GONE.items()}
STAYS = [filled(example.replace("*", kind.marks.split()[0])) for kind in kinds() for example in kind.stays]
OWN = {f"environment: {name}": f"«{value}»" for name, value in ENVIRON.items()}
JWT = next(text.strip("«»") for name, text in GONE.items() if name.startswith("JSON Web"))
OPENAI = "sk-proj-abc_def-GHIjkl0123456789"


def test_each_kind_has_examples() -> None:
    assert [kind.name for kind in kinds() if not kind.gone or not kind.stays] == []


@pytest.mark.parametrize("name", GONE | OWN)
@pytest.mark.parametrize("around", ["{}", "see {} there", "one\n{}\ntwo", "'{}'", "[{}],"])
def test_a_planted_secret_is_gone_and_nothing_else(name: str, around: str) -> None:
    redact, marked = redactor(ENVIRON), (GONE | OWN)[name]
    planted = around.replace("{}", re.sub("[«»]", "", marked))
    found = redact(planted)
    assert found == around.replace("{}", re.sub("«.*?»", REDACTED, marked, flags=re.DOTALL))
    assert redact(found) == found
    # so it is where a text holds the JSON of a text, as the arguments of a call do
    within = redact(json.dumps({"code": f"a\n{planted}\n"}))
    for secret in re.findall("«(.*?)»", marked, re.DOTALL):
        assert json.dumps(secret)[1:-1] not in within
    json.loads(within)


@pytest.mark.parametrize("text", [*STAYS, "Straße İstanbul password = input()"])
def test_code_and_prose_are_left_as_they_are(text: str) -> None:
    redact = redactor(ENVIRON)
    assert redact(text) == text
    assert redact(json.dumps({"code": text})) == json.dumps({"code": text})


#: Lines of a private key: as the file has them, and with its last one short.
BODY = [
    f"MIIEvQIBADANBgkqhkiG9w0BAQEFAASC{filled('{32}')}",
    *[filled("{64}")[n:] + filled("{64}")[:n] for n in range(20)],
]
PEM = ["-----BEGIN PRIVATE KEY-----", *BODY, "aB3dE6=", "-----END PRIVATE KEY-----"]
PRINTED = {
    "as it is": "\n".join(PEM),
    "quoted": "\n".join(f"> {line}" for line in PEM),
    "numbered": "\n".join(f"{n:6}\t{line}" for n, line in enumerate(PEM)),
    "numbered with colons": "\n".join(f"{n}: {line}" for n, line in enumerate(PEM)),
    "indented": "\n".join(f"        {line}" for line in PEM),
    "a diff": "\n".join(f"+{line}" for line in PEM),
    "a list": repr(PEM),
    "escaped": "\n".join(PEM).replace("\n", "\\n"),
    "escaped twice": json.dumps(json.dumps("\n".join(PEM))),
    "encrypted": "\n".join([PEM[0], "Proc-Type: 4,ENCRYPTED", "DEK-Info: AES-128-CBC,0123456789ABCDEF", "", *PEM[1:]]),
    "without its first line": "\n".join(PEM[1:]),
    "numbered, without its first lines": "\n".join(f"{n}: {line}" for n, line in enumerate(PEM[5:])),
    "without its last lines": "\n".join(PEM[:-5]),
    "clipped in the middle": "\n".join([*PEM[:8], "[... 500 characters left out ...]", *PEM[-8:]]),
    "the body alone": "\n".join(BODY),
}


@pytest.mark.parametrize("name", PRINTED)
def test_no_line_of_a_private_key_is_left(name: str) -> None:
    found = redactor({})(f"$ cat key.pem\n{PRINTED[name]}\n$ ls\nkey.pem a_function_of_many_words_in_2026\n")
    assert [line for line in PEM[1:-1] if line[:16] in found] == []
    assert found.startswith("$ cat key.pem\n")
    assert found.endswith("\n$ ls\nkey.pem a_function_of_many_words_in_2026\n")


PIECES = parts("sk-|token|password|api_key|cookie: a|=|:|\"|'|\\|\n| |a1|B2b3c4d5|://|@|Bearer |PASS=|--|.|&")


@given(st.lists(st.sampled_from(PIECES), max_size=30).map("".join))
def test_redacting_twice_changes_nothing_more(text: str) -> None:
    redact = redactor(ENVIRON)
    assert redact(redact(text)) == redact(text)


@given(st.text(max_size=40), st.sampled_from([*ENVIRON.values(), JWT, OPENAI]), st.text(max_size=40))
def test_a_secret_is_found_between_any_texts(before: str, secret: str, after: str) -> None:
    assert secret not in redactor(ENVIRON)(f"{before} {secret}\n{after}")


def test_sources_docs_and_recorded_runs_stay_as_they_are() -> None:
    redact, changed, seen = redactor({}), set[str](), 0
    for path in chain(*(ROOT.glob(f"{place}/**/*.*") for place in ("rlm_loop", "docs", "notebooks", "tests/golden"))):
        if path.suffix in (".py", ".md", ".js", ".css", ".html", ".jsonl", ".ipynb", ".toml", ".json"):
            text = path.read_text("utf-8")
            seen += len(text)
            changed |= {path.name} if redact(text) != text else set()
    assert seen > 1_000_000
    assert changed == {"secret_kinds.toml", "redact.py"}  # they hold made-up secrets


NOISE = bytes(range(256)) * 300
DATA = {
    "a picture": base64.b64encode(NOISE).decode(),
    "a picture in lines": base64.encodebytes(NOISE).decode(),
    "an address of a picture": f'<img src="data:image/png;base64,{base64.b64encode(NOISE).decode()}">',
    "hashes": f"commit {'0123456789abcdef' * 2}01234567\nsha256:{'9f86d081884c7d65' * 4}\n{'d41d8cd98f00b204' * 2}",
    "identifiers": "3f2504e0-4f89-11d3-9a0c-0305e82c3301 01ARZ3NDEKTSV4RRFFQ69G5FAV r1f0c2a9b7e",
    "a schema": '{"properties": {"token": {"type": "string", "description": "The API key to use"}}}',
    "a certificate": "-----BEGIN CERTIFICATE-----\nMIIDdzCCAl+gAwIBAgIEAgAAuTANBg\n-----END CERTIFICATE-----",
    "a lock file": "integrity sha512-" + base64.b64encode(NOISE[:64]).decode(),
    "talk of keys": 'if "-----BEGIN PRIVATE KEY-----" in x and x[-25:] == "-----END PRIVATE KEY-----":\n    load()',
}


@pytest.mark.parametrize("name", DATA)
def test_data_stays_as_it_is(name: str) -> None:
    assert redactor({})(DATA[name]) == DATA[name]


SECRETS = "GITHUB_TOKEN PGPASSWORD DB_PASS MYSQL_PWD GH_PAT SESSION_COOKIE SIGNING_SALT"
HARMLESS = "TOKENIZERS_PARALLELISM MONKEY_BUSINESS PATTERN AUTHOR SSH_KEY_FILE SSH_AUTH_SOCK"  # no word for a secret
VARIABLES = {
    **dict.fromkeys(SECRETS.split(), ("abcdefgh12345", True)),
    "MY_API_KEY": ("hunter2hunter2", True),
    "AUTH_HEADER": ("Digest abcdefgh12345", True),
    **dict.fromkeys(("SLACK_WEBHOOK", "SLACK_WEBHOOK_URL"), ("https://example.com/hook/abc", True)),
    **dict.fromkeys(HARMLESS.split(), ("abcdefgh12345", False)),
    "KEYBOARD_LAYOUT": ("function-row-12", False),
    "SORT_KEY": ("administration", False),  # a common word
    "API_TOKEN": ("short1", False),
    "PWD": ("/home/somebody12", False),
    "SSL_KEY": ("/etc/ssl/private/key.pem", False),
}


@pytest.mark.parametrize("name", VARIABLES)
def test_which_values_of_the_environment_are_secrets(name: str) -> None:
    value, secret = VARIABLES[name]
    redact = redactor({name: value})
    assert (redact(f"it is {value}, see") == f"it is {REDACTED}, see") == secret
    assert redact(f"x{value}y {value}0") == f"x{value}y {value}0"  # as whole words only


def test_a_field_named_for_a_secret_hides_its_value() -> None:
    secrets = {"api_key": "abcd1234efgh", "passphrase": "correct horse battery staple", "secret": "aB3" * 999}
    secrets |= {"Cookie": "sid=abcd1234efgh; a=b"}
    others = {"name": "abcd1234efgh", "max_tokens": 5}
    found = redactor({}).value({**secrets, **others, "all": [{"password": "hunter22"}]})
    assert found == {**dict.fromkeys(secrets, REDACTED), **others, "all": [{"password": REDACTED}]}


HOSTILE = parts(
    "sk-|-eyJ|eyJ.|token=|token=a1 |password:|://a:|bearer |--token |cookie: a=|cookies={|curl -u |auth=('|machine x "
    '|MIIEpAIBAAKCAQEA|-----BEGIN PRIVATE KEY-----\n|-----END PRIVATE KEY-----\n|password="|\\\\|--a-|fm2_|SG.|A1|key ='
)


@pytest.mark.parametrize("piece", HOSTILE)
def test_no_text_takes_time_that_grows_with_its_square(piece: str) -> None:
    grows_in_proportion(redactor({}), piece)


def test_a_line_of_a_million_hostile_characters_is_read_in_time_that_grows_with_its_length() -> None:
    grows_in_proportion(lambda text: redactor({})(text * 6), "".join(HOSTILE))


def test_no_secret_is_kept_or_shown(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: Any) -> None:
    """Of a run in which each secret was asked about, said by the model, and printed by its code."""
    path, shown = tmp_path / "run.jsonl", io.StringIO()
    text = "\n".join([re.sub("[«»]", "", text) for text in (GONE | OWN).values()] + [PRINTED["as it is"]])
    cells = [f"```python\nprint({text!r})\n```", f"```python\nfinal_answer = {text!r}\n```"]
    for name, value in ENVIRON.items():
        monkeypatch.setenv(name, value)

    def on_step_end() -> None:  # a hook that fails, and says in its error all that it knows
        raise ValueError(text)

    live, loud = LiveView(), SimpleNamespace(on_step_end=on_step_end)
    agent = ToolLoopAgent(model=ScriptedModel(cells, name="m"), hooks=(live, loud))
    with caplog.at_level(logging.DEBUG, "rlm_loop"), monkeypatch.context() as patch:
        patch.setattr(sys, "stderr", shown)
        outcome = agent.run(f"What are these?\n{text}", trace=path)
    live.outcome = None
    kept = {
        "trace": path.read_text(),
        "page": run_page(path),
        "live view in a terminal": shown.getvalue(),
        "live view": live.html(),
        "outcome in a notebook": outcome.to_html(),
        "outcome": f"{outcome!r}\n{outcome}",
        "record": read(path)._repr_html_(),
        "log": caplog.text,
    }
    secrets = {s for text in (GONE | OWN).values() for s in re.findall("«(.*?)»", text, re.DOTALL)} | set(BODY)
    secrets -= {":pw", "sesame", "hunter2"}  # others hold these words, too
    forms = {form for s in secrets for form in (s, json.dumps(s)[1:-1], escape(s))}
    for name, said in kept.items():
        assert REDACTED in said, name
        assert [form for form in forms if form in said] == [], name


def test_a_page_of_an_older_trace_is_redacted_too(tmp_path: Path) -> None:
    path = tmp_path / "old.jsonl"
    with Trace(path) as trace:
        trace.start(task="t", question="What is PLANTED?")
    path.write_text(path.read_text().replace("PLANTED", JWT))
    assert JWT in str(read(path).start)
    assert JWT not in run_page(path)


def test_an_error_of_a_provider_quotes_no_key_also_of_those_that_were_given_in_python() -> None:
    for key in ("local-gateway-7f3a91", "no-key-needed"):
        OpenAICompatibleModel("m", "http://127.0.0.1:9/v1", api_key=key)
    error = ModelError(f"{OPENAI} and local-gateway-7f3a91 are no keys here, no-key-needed")
    assert str(error) == error.message == f"{REDACTED} and {REDACTED} are no keys here, no-key-needed"
