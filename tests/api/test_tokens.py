import hashlib
import json
from pathlib import Path

import pytest

from facta.api import TokenError, Tokens
from facta.api.tokens import required
from facta.model.identity import Denied, Identity


@pytest.fixture
def tokens(tmp_path: Path) -> Tokens:
    return Tokens(tmp_path / "new" / "tokens.json")


def test_a_token_names_its_tenant_producer_and_scopes(tokens: Tokens) -> None:
    text = tokens.create(["ux", "evidence", "ux"], tenant="acme", producer="agents")
    assert tokens.identify(f"Bearer {text}") == Identity(
        "acme", "agents", frozenset({"evidence", "ux"})
    )
    assert tokens.identify(f"bearer  {text} ").tenant == "acme"


def test_the_file_holds_hashes_only_and_is_private(tokens: Tokens) -> None:
    text = tokens.create(["ingest"])
    written = tokens.path.read_text()
    assert text.startswith("facta_")
    assert len(text) == len("facta_") + 43
    assert text not in written
    assert text.removeprefix("facta_") not in written
    [kept] = json.loads(written)["tokens"]
    assert kept["hash"] == hashlib.sha256(text.encode()).hexdigest()
    assert set(kept) == {"id", "hash", "tenant", "producer", "scopes", "created"}
    assert tokens.path.stat().st_mode & 0o777 == 0o600
    assert [path.name for path in tokens.path.parent.iterdir()] == ["tokens.json"]


def test_two_tokens_differ_and_one_can_be_revoked(tokens: Tokens) -> None:
    first, second = tokens.create(["ingest"]), tokens.create(["ingest"], producer="p")
    assert first != second
    one, two = tokens.all()
    assert one.id != two.id
    assert one.producer == one.id
    tokens.revoke(one.id)
    assert [token.id for token in tokens.all()] == [two.id]
    assert tokens.identify(f"Bearer {second}").producer == "p"
    with pytest.raises(Denied) as denied:
        tokens.identify(f"Bearer {first}")
    assert denied.value.status == 401


def test_an_unknown_id_cannot_be_revoked(tokens: Tokens) -> None:
    tokens.create(["ingest"])
    with pytest.raises(TokenError, match="no token has this id"):
        tokens.revoke("canary")


@pytest.mark.parametrize("scopes", [[], ["evidence", "root"], ["Evidence"], [""]])
def test_only_known_scopes_are_given(tokens: Tokens, scopes: list[str]) -> None:
    with pytest.raises(TokenError, match="a scope is one of"):
        tokens.create(scopes)
    assert tokens.all() == []


@pytest.mark.parametrize("text", ["", "{", "[]", '{"tokens":[{"hash":"canary"}]}', "\0" * 9])
def test_a_damaged_file_lets_nobody_in_and_says_so(tokens: Tokens, text: str) -> None:
    token = tokens.create(["evidence"])
    tokens.path.write_text(text)
    with pytest.raises(Denied, match="cannot be read"):
        tokens.identify(f"Bearer {token}")
    with pytest.raises(TokenError) as caught:
        tokens.all()
    assert "canary" not in str(caught.value)
    with pytest.raises(TokenError):
        tokens.create(["evidence"])
    assert tokens.path.read_text() == text


def test_a_change_of_the_file_is_seen(tokens: Tokens) -> None:
    text = tokens.create(["evidence"])
    server = Tokens(tokens.path)
    assert server.identify(f"Bearer {text}").scopes == {"evidence"}
    tokens.path.unlink()
    with pytest.raises(Denied, match="not known"):
        server.identify(f"Bearer {text}")


def test_a_failed_write_leaves_the_file_and_no_rest(
    tokens: Tokens, monkeypatch: pytest.MonkeyPatch
) -> None:
    tokens.create(["evidence"])
    before = tokens.path.read_bytes()

    def full(_handle: int) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("os.fsync", full)
    with pytest.raises(OSError, match="No space"):
        tokens.create(["evidence"])
    assert tokens.path.read_bytes() == before
    assert [path.name for path in tokens.path.parent.iterdir()] == ["tokens.json"]


def test_where_tokens_are_needed(tokens: Tokens) -> None:
    assert required(None, on_loopback=True) is None
    with pytest.raises(TokenError, match="set FACTA_TOKENS"):
        required(None, on_loopback=False)
    for on_loopback in (True, False):
        with pytest.raises(TokenError, match="has no token"):
            required(tokens.path, on_loopback=on_loopback)
    tokens.create(["evidence"])
    found = required(tokens.path, on_loopback=False)
    assert found is not None
    assert len(found.all()) == 1
