"""Ordinary opaque values, made by the tools that make them in an agent's work, come back as they were."""

import base64
import bz2
import datetime as dt
import gzip
import hashlib
import io
import json
import lzma
import os
import pickle
import shutil
import sqlite3
import struct
import subprocess
import sys
import tarfile
import uuid
import zipfile
import zlib
from collections.abc import Callable, Iterator
from email.message import EmailMessage
from pathlib import Path

import numpy as np
import pyarrow as pa  # type: ignore[import-untyped]
import pyarrow.parquet as pq  # type: ignore[import-untyped]
import pytest
from backports import zstd
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec, ed25519, padding, rsa
from cryptography.x509.oid import NameOID
from PIL import Image, ImageDraw

from facta.model.records import Record
from facta.sealing import seal

WORDS = "Order 7 was refunded after the policy check; the customer was told so by mail. " * 12


def b64(data: bytes) -> str:
    return base64.b64encode(data).decode()


def b64url(data: bytes) -> str:
    return base64.urlsafe_b64encode(data).decode().rstrip("=")


def _run(*command: str, cwd: Path | None = None, stdin: bytes = b"") -> bytes:
    env = {**os.environ, "GIT_CONFIG_GLOBAL": os.devnull, "GIT_CONFIG_SYSTEM": os.devnull}
    for who in ("AUTHOR", "COMMITTER"):
        env |= {f"GIT_{who}_NAME": "a", f"GIT_{who}_EMAIL": "a@example.com"}
    return subprocess.run(
        command, cwd=cwd, input=stdin, env=env, check=True, capture_output=True
    ).stdout


def _images() -> Iterator[tuple[str, str]]:
    noise = Image.fromarray(np.random.default_rng(1).integers(0, 255, (60, 60, 3), dtype=np.uint8))
    ImageDraw.Draw(noise).ellipse((5, 5, 40, 40), fill="red")
    for form in ("PNG", "JPEG", "GIF", "WEBP", "TIFF", "BMP", "ICO", "PDF"):
        out = io.BytesIO()
        noise.save(out, form)
        yield f"image-{form}", b64(out.getvalue())
        if form in ("PNG", "JPEG"):
            yield f"image-{form}-url-alphabet", b64url(out.getvalue())
            yield (
                f"image-{form}-data-url",
                f"data:image/{form.lower()};base64,{b64(out.getvalue())}",
            )


def _archives() -> Iterator[tuple[str, str]]:
    noise = np.random.default_rng(2).bytes(900)
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("a.bin", noise)
    yield "zip", b64(out.getvalue())
    yield "zip-url-alphabet", b64url(out.getvalue())
    yield "gzip", b64(gzip.compress(noise))
    yield "bzip2", b64(bz2.compress(noise))
    yield "xz", b64(lzma.compress(noise))
    yield "zstd", b64(zstd.compress(noise))
    yield "zlib", b64(zlib.compress(WORDS.encode()))
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w:gz") as archive_file:
        info = tarfile.TarInfo("a.bin")
        info.size = len(noise)
        archive_file.addfile(info, io.BytesIO(noise))
    yield "tar.gz", b64(out.getvalue())


def _keys() -> Iterator[tuple[str, str]]:
    key = rsa.generate_private_key(public_exponent=65537, key_size=2048)
    curve, edwards = ec.generate_private_key(ec.SECP256R1()), ed25519.Ed25519PrivateKey.generate()
    pem, pkcs8 = serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8
    none = serialization.NoEncryption()
    yield "pem-rsa", key.private_bytes(pem, pkcs8, none).decode()
    yield "pem-ec", curve.private_bytes(pem, pkcs8, none).decode()
    public = serialization.PublicFormat.SubjectPublicKeyInfo
    yield "pem-public", key.public_key().public_bytes(pem, public).decode()
    yield "der-public", b64(key.public_key().public_bytes(serialization.Encoding.DER, public))
    ssh = (serialization.Encoding.OpenSSH, serialization.PublicFormat.OpenSSH)
    yield "ssh-rsa", key.public_key().public_bytes(*ssh).decode()
    yield "ssh-ed25519", edwards.public_key().public_bytes(*ssh).decode()
    yield (
        "openssh-key",
        edwards.private_bytes(pem, serialization.PrivateFormat.OpenSSH, none).decode(),
    )
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "example.com")])
    start = dt.datetime(2026, 1, 1, tzinfo=dt.UTC)
    certificate = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(key.public_key())
        .serial_number(7)
        .not_valid_before(start)
        .not_valid_after(start + dt.timedelta(days=9))
        .sign(key, hashes.SHA256())
    )
    yield "certificate-pem", certificate.public_bytes(pem).decode()
    yield "certificate-der", b64(certificate.public_bytes(serialization.Encoding.DER))
    claims = {"sub": "7", "scope": "orders", "iss": "https://example.com", "text": WORDS[:200]}
    head = b64url(json.dumps({"alg": "RS256", "typ": "JWT"}).encode())
    body = f"{head}.{b64url(json.dumps(claims).encode())}"
    signed = key.sign(body.encode(), padding.PKCS1v15(), hashes.SHA256())
    yield "jwt-rs256", f"{body}.{b64url(signed)}"
    yield "jwt-bearer", f"Bearer {body}.{b64url(signed)}"
    yield "jwt-ed25519", f"{body}.{b64url(edwards.sign(body.encode()))}"
    yield (
        "webhook-signature",
        json.dumps({"signature": b64(signed), "data": b64(signed), "id": "evt_1"}),
    )
    yield "detached-signature", b64(signed)


def _hashes() -> Iterator[tuple[str, str]]:
    for name in ("md5", "sha1", "sha256", "sha512"):
        digest = hashlib.new(name, WORDS.encode(), usedforsecurity=False)
        yield f"{name}-hex", digest.hexdigest()
        yield f"{name}-integrity", f"{name}-{b64(digest.digest())}"
    yield "hex-dump", hashlib.shake_256(b"x").hexdigest(600)
    yield "uuid", str(uuid.UUID(int=7, version=4))
    yield (
        "uuids",
        " ".join(str(uuid.UUID(bytes=hashlib.md5(bytes([n])).digest())) for n in range(20)),
    )
    raw = hashlib.shake_256(b"id").digest(78)
    yield "response-id-109", "resp_" + b64(raw)
    yield "etag", f'W/"{b64(hashlib.sha256(b"e").digest())}"'


def _numbers() -> Iterator[tuple[str, str]]:
    numbers = np.random.default_rng(3).normal(0, 0.05, 256)
    yield "embedding-float32", b64(numbers.astype("<f4").tobytes())
    yield "embedding-float64", b64(numbers.astype("<f8").tobytes())
    yield "embedding-json", json.dumps({"embedding": b64(numbers.astype("<f4").tobytes())})
    out = io.BytesIO()
    np.save(out, numbers)
    yield "numpy-file", b64(out.getvalue())
    out = io.BytesIO()
    pq.write_table(pa.table({"n": numbers}), out)
    yield "parquet", b64(out.getvalue())
    yield "pickle", b64(pickle.dumps({"n": numbers.tolist()}))
    yield "struct", b64(struct.pack("<200H", *range(200)))


def _texts() -> Iterator[tuple[str, str]]:
    mail = EmailMessage()
    mail["Subject"], mail["To"] = "Order 7", "a@example.com"
    mail.set_content(WORDS)
    mail.add_attachment(
        b"\x89PNG\r\n\x1a\n" + bytes(200), maintype="image", subtype="png", filename="a.png"
    )
    yield "mail-base64url", b64url(mail.as_bytes())
    yield "mail-raw", mail.as_string()
    yield "text-base64", b64(WORDS.encode())
    yield "json-base64", b64(json.dumps({"order": 7, "text": WORDS}).encode())
    yield "chinese-base64", b64(("订单已退款。" * 40).encode())
    yield "rule-lines", "-" * 200 + "\n" + "=" * 200 + "\n" + "_-" * 100
    yield "path", "/" + "/".join(["srv", "Data", "Orders2026", "refunds"] * 20)
    yield "url", "https://example.com/" + "/".join(["aB3", "Orders", "x9"] * 30) + "?next=abc"
    yield (
        "identifier",
        "AbstractSingletonProxyFactoryBeanWithConfigurableRetryPolicyAndObservers2" * 3,
    )


def _tools(folder: Path) -> Iterator[tuple[str, str]]:
    yield "openssl-rand", _run("openssl", "rand", "-base64", "600").decode()
    one_line = _run("openssl", "base64", "-A", stdin=_run("openssl", "rand", "600")).decode()
    yield "openssl-rand-line", one_line
    salted = _run(
        "openssl", "enc", "-aes-256-cbc", "-pbkdf2", "-a", "-A", "-k", "x", stdin=WORDS.encode()
    )
    yield "openssl-enc", salted.decode()
    yield "openssl-dgst", _run("openssl", "dgst", "-sha512", stdin=b"x").decode()
    (folder / "a.bin").write_bytes(np.random.default_rng(4).bytes(700))
    for command in (["init", "-q", "-b", "main"], ["add", "."], ["commit", "-qm", "Refund"]):
        _run("git", *command, cwd=folder)
    _run("git", "bundle", "create", "-q", "a.bundle", "HEAD", cwd=folder)
    yield "git-bundle", b64((folder / "a.bundle").read_bytes())
    pack = _run("git", "pack-objects", "--stdout", "-q", "--all", "--revs", cwd=folder, stdin=b"")
    yield "git-pack", b64(pack)
    yield (
        "git-log",
        _run("git", "log", "--format=fuller", "--raw", "--no-abbrev", cwd=folder).decode(),
    )
    yield "git-binary-diff", _run("git", "show", "--binary", cwd=folder).decode()
    yield "git-index", b64((folder / ".git" / "index").read_bytes())
    yield "pip-hash", _run(sys.executable, "-m", "pip", "hash", str(folder / "a.bin")).decode()
    database = sqlite3.connect(folder / "a.db")
    database.execute("CREATE TABLE t AS SELECT 7 AS n")
    database.commit()
    database.close()
    yield "sqlite", b64((folder / "a.db").read_bytes())
    yield "python-bytecode", b64(compile("x = 7\n" * 60, "a.py", "exec").co_code)
    if shutil.which("npm"):
        yield "npm-lock", _npm_lock(folder / "npm")


def _npm_lock(folder: Path) -> str:
    """A lock file with the integrity of a package that npm packs and installs from a file."""
    (folder / "dep").mkdir(parents=True)
    (folder / "dep" / "package.json").write_text('{"name": "dep", "version": "1.0.0"}')
    (folder / "package.json").write_text('{"name": "app", "version": "1.0.0"}')
    packed = _run("npm", "pack", "--silent", "./dep", cwd=folder).decode().strip()
    _run("npm", "install", "--silent", "--offline", "--no-audit", f"./{packed}", cwd=folder)
    lock = (folder / "package-lock.json").read_text()
    assert "sha512-" in lock
    return lock


@pytest.fixture(scope="module")
def benign(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    made = [_images, _archives, _keys, _hashes, _numbers, _texts]
    values = {name: value for make in made for name, value in make()}
    return values | dict(_tools(tmp_path_factory.mktemp("tools")))


# Their text is evenly spread base64 with nothing to know it by: as the only text of a message it
# is what a sealed value looks like, so that only a tool's data can hold it unharmed.
LIKE_CIPHERTEXT = {"openssl-rand-line", "detached-signature", "webhook-signature"}


def _arguments(value: str) -> Iterator[tuple[str, object]]:
    yield "gen_ai.tool.call.arguments", json.dumps({"content": value, "n": 10.50})
    yield "gen_ai.tool.call.result", value
    yield "ai.toolCall.result", json.dumps(json.dumps({"data": value}))
    yield "http.request.body", value
    call = {"type": "tool_call", "id": "call_1", "name": "f", "arguments": {"file": value}}
    reply = {"type": "tool_call_response", "id": "call_1", "response": value}
    yield "gen_ai.output.messages", json.dumps([{"role": "assistant", "parts": [call]}])
    yield "gen_ai.input.messages", json.dumps([{"role": "user", "parts": [reply]}])
    yield "gen_ai.input.messages", [{"role": "tool", "parts": [{"type": "text", "content": value}]}]
    block = {
        "type": "tool_result",
        "tool_use_id": "t",
        "content": [{"type": "text", "text": value}],
    }
    yield "input.value", json.dumps({"messages": [{"role": "user", "content": [block]}]})
    use = {"type": "tool_use", "id": "t", "name": "f", "input": {"signature": value, "data": value}}
    yield "output.value", json.dumps({"content": [use]})
    yield (
        "llm.None.output",
        repr([{"type": "function_call", "call_id": "c", "arguments": json.dumps({"x": value})}]),
    )


def test_there_are_sixty_of_them(benign: dict[str, str]) -> None:
    assert len(benign) >= 60


def test_arguments_and_results_come_back_as_they_were(
    benign: dict[str, str], span: Callable[..., Record]
) -> None:
    wrong = [
        (name, attribute)
        for name, value in benign.items()
        for attribute, shown in _arguments(value)
        if seal(record := span((attribute, shown))) != record
    ]
    assert wrong == []


def test_a_tool_span_comes_back_as_it_was(
    benign: dict[str, str], span: Callable[..., Record]
) -> None:
    kinds = [("openinference.span.kind", "TOOL"), ("traceloop.span.kind", "tool")]
    wrong = [
        name
        for name, value in benign.items()
        for kind in kinds
        if seal(record := span(kind, ("output.value", value), ("traceloop.entity.output", value)))
        != record
    ]
    assert wrong == []


def test_text_of_messages_comes_back_as_it_was(
    benign: dict[str, str], span: Callable[..., Record]
) -> None:
    wrong = []
    for name, value in benign.items():
        parts = [{"type": "text", "content": f"Please look at this:\n{value}\nand tell me."}]
        if name not in LIKE_CIPHERTEXT:
            parts += [{"type": "text", "content": value}, {"type": "reasoning", "content": value}]
        message = [{"role": "user", "parts": parts}]
        record = span(
            ("gen_ai.input.messages", json.dumps(message)),
            ("gen_ai.prompt.0.content", parts[-1]["content"]),
        )
        if seal(record) != record:
            wrong.append(name)
    assert wrong == []
