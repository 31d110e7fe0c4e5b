"""What looks like a secret is gone from all that is kept; what only looks like the code of a secret stays as it is."""

from __future__ import annotations

import io
import json
import logging
import sys
from html import escape
from pathlib import Path

import pytest
from growth import grows_in_proportion
from hypothesis import given
from hypothesis import strategies as st

from rlm_loop import Outcome, ToolLoopAgent
from rlm_loop.accounting import Ledger
from rlm_loop.messages import Usage
from rlm_loop.models import OpenAICompatibleModel, ScriptedModel
from rlm_loop.models.base import ModelError
from rlm_loop.outcome import Stop
from rlm_loop.replay import replay
from rlm_loop.report.notebook.live import LiveView
from rlm_loop.report.run import run_page
from rlm_loop.tasks.swebench.predictions import predictions_of
from rlm_loop.traces import Trace, read
from rlm_loop.traces.redact import REDACTED, redactor

ENVIRON = {
    "MY_API_KEY": "hunter2hunter2",
    "AWS_SESSION_TOKEN": 'quote"and\nline9',
    "PGPASSWORD": "correct-horse-battery-staple",
}

#: Secrets that are known wherever they stand, by what they are.
SHAPES = {
    "OpenAI": "sk-abcdefghijklmnopqrstuv",
    "OpenAI project": "sk-proj-abc_def-GHIjkl0123456789",
    "OpenAI service account": "sk-svcacct-abcdefghijklmnop",
    "Anthropic": "sk-ant-api03-abc_DEF-ghij0123456789AA",
    **{f"GitHub {kind}": f"gh{kind}_abcdefghijklmnopqrstuvwxyz0123456789" for kind in "pousr"},
    "GitHub fine-grained": "github_pat_11ABCDEFG0abcdefghijkl_mnopqrstuvwxyz0123456789ABCDEFGHIJKLMNOPQRSTUVWX",
    "GitLab": "glpat-abcdefghij_KLMNOPQR1",
    "AWS key id": "AKIAIOSFODNN7EXAMPLE",
    "AWS temporary key id": "ASIAIOSFODNN7EXAMPLE",
    "Google": "AIzaSyA1234567890abcdefghijklmnopqrstuv",
    "Slack": "xoxb-123456789012-abcdefghijkl",
    "Hugging Face": "hf_abcdefghijklmnopqrstuvwxyzABCDEFGH",
    "JWT": "eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxMjM0NTY3ODkwIn0.dozjgNryP4J3jVmNHl0w5N_XgL0n3I9PlFUP0THsR8U",
    **{f"environment {name}": value for name, value in ENVIRON.items()},
}

#: Secrets that are known by what stands in front of them.
NAMED = {
    "key=": ("api_key={}", "abcd1234efgh5678"),
    "key in an address": ("https://example.com/y?api_key={}&z=1", "abcdefgh1234"),
    "Google's key in an address": ("https://example.com/y?key={}", "abcdefgh1234"),
    "JSON": ('{{"api_key": "{}"}}', "abcd1234efgh5678"),
    "JSON in JSON": ('{{\\"api_key\\": \\"{}\\"}}', "abcd1234efgh5678"),
    "a dict": ("{{'client_secret': '{}'}}", "abcdefghijklmnopqr"),
    "an annotated name": ('api_key: str = "{}"', "abcd1234efgh5678"),
    "a shell": ("export OPENAI_API_KEY={}", "abcd1234efgh5678"),
    "an option": ("tool --api-key {} --verbose", "abcd1234efgh5678"),
    "token=": ("token={}", "abcdef1234567890"),
    "password=": ("password={}", "hunter2"),
    "password:": ("Password: {}", "Abcdef1!"),
    "a connection string": ("Server=db;Uid=me;Pwd={};", "hunter22"),
    "an address": ("postgres://me:{}@example.com/db", "pw"),
    "an address without a user": ("redis://:{}@example.com", "pw"),
    "Bearer": ("Authorization: Bearer {}", "abcdefghijklmnop1234"),
    "Bearer, letters alone": ("authorization: Bearer {}", "abcdefghijklmnopqrst"),
    "Bearer in JSON": ('{{"Authorization": "Bearer {}"}}', "abcdefghijklmnop1234"),
    "Bearer by itself": ("-H 'X: Bearer {}'", "abcdefghijklmnop1234"),
    "Basic": ("Authorization: Basic {}", "dXNlcjpwYXNzd29yZA=="),
    "Basic by itself": ("Basic {}", "dXNlcjpwYXNzd29yZA=="),
    "AWS secret": ("aws_secret_access_key = {}", "wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY"),
    "AWS secret in JSON": ('"SecretAccessKey": "{}"', "wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY"),
    "PEM": (
        "-----BEGIN RSA PRIVATE KEY-----\n{}\nabcdefgh+/==\n-----END RSA PRIVATE KEY-----",
        "MIIEpAIBAAKCAQEA0123456789abcdef",
    ),
    "PEM, escaped and clipped": ("'-----BEGIN PRIVATE KEY-----\\n{}\\nabcd", "MIIEpAIBAAKCAQEA0123456789abcdef"),
}
PLANTED = {**{name: ("{}", value) for name, value in SHAPES.items()}, **NAMED}

#: Code, prose and data of every day.
HARMLESS = """
password = input()
password = getpass.getpass()
self.password = password
f(user=u, password=user.password)
password: str
password: required
"password": "password"
token=tokens[i]
token = next(tokens)
token = text[i:i+12]
token = m.group(1)
if token == 'abc123def456789':
assert tokenize(token) == ['abc123def4567']
tokenizer=AutoTokenizer.from_pretrained('x')
{"token": "the", "pos": "DET"}
max_tokens=4096, input_tokens: 1,234
sorted(xs, key=len)
key=lambda x: x[1]
d[key]=value123
for key, token in pairs: out[key]=token
{'key': 'abc123def456ghi789'}
foreign_key='users.id2'
primary_key=True
api_key=None
api_key=os.environ["OPENAI_API_KEY"]
private_key = rsa.generate_private_key(65537)
f"https://x.example?key={key}"
f"http://{user}:{pw}@{host}/"
https://example.com/search?key=name&page=2
https://example.com:8080/a@b
secret = secrets.token_hex(16)
the secret: it works
Bearer of bad news, basic operations, Basic authentication
headers = {"Authorization": f"Bearer {token}"}
curl -H "Authorization: Bearer $TOKEN" -H "X-Api-Key: <your key>"
if "-----BEGIN PRIVATE KEY-----" in text:
class="sk-toggleable__label-arrow sk-estimator-id-1"
hf_hub_download, sk_test, task-abcdefghijklmnopqrstuv
PWD=/home/user1/work
0123456789abcdef0123456789abcdef01234567
""".strip().splitlines()


@pytest.mark.parametrize("name", PLANTED)
@pytest.mark.parametrize("around", ["{}", "see {} there", "one\n{}\ntwo", "'{}'", "x={}", "[{}],"])
def test_a_planted_secret_is_gone_and_nothing_else(name: str, around: str) -> None:
    redact, (form, secret) = redactor(ENVIRON), PLANTED[name]
    planted = around.format(form.format(secret))
    found = redact(planted)
    assert secret not in found
    assert REDACTED in found
    assert redact(found) == found
    assert found.startswith(around.partition("{")[0])
    assert found.endswith(around.rpartition("}")[2])
    # so it is where a text holds the JSON of a text, as the arguments of a call do
    inner = json.dumps(secret)[1:-1]
    assert inner not in redact(json.dumps({"code": f"a\n{planted}\n"}))


@pytest.mark.parametrize("text", HARMLESS)
def test_code_and_prose_are_left_as_they_are(text: str) -> None:
    redact = redactor(ENVIRON)
    assert redact(text) == text
    assert redact(json.dumps({"code": text})) == json.dumps({"code": text})


PIECES = [
    "sk-",
    "token",
    "password",
    "api_key",
    "=",
    ":",
    '"',
    "'",
    "\\",
    "\n",
    " ",
    "a1",
    "B2b3c4d5",
    "://",
    "@",
    "Bearer ",
]


@given(st.lists(st.sampled_from(PIECES), max_size=30).map("".join))
def test_redacting_twice_changes_nothing_more(text: str) -> None:
    redact = redactor(ENVIRON)
    assert redact(redact(text)) == redact(text)


@given(st.text(max_size=40), st.sampled_from(sorted(SHAPES)), st.text(max_size=40))
def test_a_secret_is_found_between_any_texts(before: str, name: str, after: str) -> None:
    found = redactor(ENVIRON)(f"{before} {SHAPES[name]}\n{after}")
    assert SHAPES[name] not in found


VARIABLES = {
    "MY_API_KEY": ("hunter2hunter2", True),
    "GITHUB_TOKEN": ("abcdefgh12345", True),
    "PGPASSWORD": ("abcdefgh12345", True),
    "DB_PASS": ("abcdefgh12345", True),
    "MYSQL_PWD": ("abcdefgh12345", True),
    "KEYBOARD_LAYOUT": ("function-row-12", False),  # no word of it is one for a secret
    "TOKENIZERS_PARALLELISM": ("abcdefgh12345", False),
    "MONKEY_BUSINESS": ("abcdefgh12345", False),
    "SORT_KEY": ("administration", False),  # a common word
    "API_TOKEN": ("short1", False),
    "PWD": ("/home/somebody12", False),
    "SSL_KEY": ("/etc/ssl/private/key.pem", False),
    "SSH_KEY_FILE": ("abcdefgh12345", False),
}


@pytest.mark.parametrize("name", VARIABLES)
def test_which_values_of_the_environment_are_secrets(name: str) -> None:
    value, secret = VARIABLES[name]
    redact = redactor({name: value})
    assert (redact(f"it is {value}, see") == f"it is {REDACTED}, see") == secret
    assert redact(f"x{value}y {value}0") == f"x{value}y {value}0"  # as whole words only


def test_a_field_named_for_a_secret_hides_its_value() -> None:
    value = {"api_key": "abcd1234efgh", "name": "abcd1234efgh", "max_tokens": 5, "all": [{"password": "hunter22"}]}
    assert redactor({}).value(value) == {
        "api_key": REDACTED,
        "name": "abcd1234efgh",
        "max_tokens": 5,
        "all": [{"password": REDACTED}],
    }


@pytest.mark.parametrize(
    "piece",
    [
        "sk-",
        "-eyJ",
        "token=",
        "token=a1 ",
        "password:",
        "://a:",
        "bearer ",
        "--token ",
        "-----BEGIN PRIVATE KEY-----\n",
    ],
)
def test_no_text_takes_time_that_grows_with_its_square(piece: str) -> None:
    grows_in_proportion(redactor({}), piece)


class Loud:
    """A hook that fails, and says in its error all that it knows."""

    def __init__(self, text: str) -> None:
        self.text = text

    def on_step_end(self) -> None:
        raise ValueError(self.text)


@pytest.fixture(scope="module")
def everything(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The trace of a run in which each secret was asked about, said by the model, and printed by its code."""
    path = tmp_path_factory.mktemp("planted") / "run.jsonl"
    text = "\n".join(form.format(secret) for form, secret in PLANTED.values())
    cells = [f"```python\nprint({text!r})\n```", f"```python\nfinal_answer = {text!r}\n```"]
    shown = io.StringIO()
    lines = io.StringIO()
    handler = logging.StreamHandler(lines)
    log = logging.getLogger("rlm_loop")
    with pytest.MonkeyPatch.context() as patch:
        for name, value in ENVIRON.items():
            patch.setenv(name, value)
        log.addHandler(handler)
        log.setLevel(logging.DEBUG)
        try:
            live = LiveView()
            patch.setattr(sys, "stderr", shown)
            agent = ToolLoopAgent(model=ScriptedModel(cells, name="m"), hooks=(live, Loud(text)))
            outcome = agent.run(f"What are these?\n{text}", trace=path)
        finally:
            log.removeHandler(handler)
            log.setLevel(logging.NOTSET)
        record = read(path)
        live.outcome = None
        kept = {
            "page.html": run_page(path),
            "live.txt": shown.getvalue(),
            "live.html": live.html(),
            "outcome.html": outcome.to_html(),
            "outcome.txt": f"{outcome!r}\n{outcome}",
            "record.html": record._repr_html_(),
            "log.txt": lines.getvalue(),
        }
    for name, said in kept.items():
        (path.parent / name).write_text(said)
    return path


@pytest.mark.parametrize("name", PLANTED)
def test_it_is_in_nothing_that_is_kept_or_shown(everything: Path, name: str) -> None:
    secret = PLANTED[name][1]
    files = sorted(everything.parent.iterdir())
    assert len(files) == 8
    for kept in files:
        text = kept.read_text()
        assert REDACTED in text, kept.name
        assert secret != "pw" or "pw@" not in text, kept.name
        if secret != "pw":
            found = secret in text or json.dumps(secret)[1:-1] in text or escape(secret) in text
            assert not found, kept.name


def test_a_redacted_run_is_replayed(everything: Path) -> None:
    found = replay(everything)
    assert found.equal == found.requests == 2, str(found)
    assert any("redacted" in note for note in found.notes)


def test_a_page_of_an_older_trace_is_redacted_too(tmp_path: Path) -> None:
    path = tmp_path / "old.jsonl"
    with Trace(path) as trace:
        trace.start(task="t", question="What is PLANTED?")
    path.write_text(path.read_text().replace("PLANTED", SHAPES["JWT"]))
    assert SHAPES["JWT"] in str(read(path).start)
    assert SHAPES["JWT"] not in run_page(path)


def test_an_error_of_a_provider_does_not_quote_the_key() -> None:
    error = ModelError(f"Incorrect API key provided: {SHAPES['OpenAI project']}")
    assert str(error) == error.message == f"Incorrect API key provided: {REDACTED}"


PATCH = "--- a/x.py\n+++ b/x.py\n@@ -1 +1 @@\n-{}\n+{}\n"


@pytest.mark.parametrize(
    ("old", "new", "kept"), [("a", "b", 1), (f"k = {SHAPES['JWT']!r}", "k = load()", 1), ("a", SHAPES["JWT"], 0)]
)
def test_a_patch_that_adds_a_secret_is_no_prediction(old: str, new: str, kept: int) -> None:
    outcome = Outcome(None, Stop.ANSWERED, (), Usage(1, 1), Ledger(), artifact=PATCH.format(old, new))
    found = predictions_of({"t": outcome})
    assert len(found) == kept
    assert ("looks like a key" in found.left_out.get("t", "")) == (not kept)


def test_a_key_that_was_given_in_python_is_a_secret_too() -> None:
    OpenAICompatibleModel("m", "http://127.0.0.1:9/v1", api_key="local-gateway-7f3a91")
    OpenAICompatibleModel("m", "http://127.0.0.1:9/v1", api_key="no-key-needed")
    assert (
        str(ModelError("local-gateway-7f3a91 is no key here, no-key-needed"))
        == f"{REDACTED} is no key here, no-key-needed"
    )
