"""What a managed Postgres puts in front of itself: it wants TLS, and passes on what it decrypts."""

import asyncio
import datetime as dt
import ssl
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass
from ipaddress import ip_address
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

SSL_REQUEST = bytes.fromhex("0000000804d2162f")


@dataclass(frozen=True)
class TlsFront:
    """Where it listens, and the certificate that vouches for it."""

    port: int
    certificate: Path


def certify(folder: Path) -> tuple[Path, Path]:
    """Makes a certificate for 127.0.0.1 that is its own authority, and its key."""
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "managed")])
    now = dt.datetime.now(dt.UTC)
    certificate = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - dt.timedelta(hours=1))
        .not_valid_after(now + dt.timedelta(hours=1))
        .add_extension(x509.SubjectAlternativeName([x509.IPAddress(ip_address("127.0.0.1"))]), critical=False)
        .add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True)
        .sign(key, hashes.SHA256())
    )
    made = folder / "certificate.pem", folder / "key.pem"
    made[0].write_bytes(certificate.public_bytes(serialization.Encoding.PEM))
    unencrypted = serialization.NoEncryption()
    made[1].write_bytes(key.private_bytes(serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, unencrypted))
    return made


@asynccontextmanager
async def tls_front(folder: Path, socket: Path) -> AsyncIterator[TlsFront]:
    """Yields a front of the Postgres that listens at the Unix socket."""
    certificate, key = certify(folder)
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    context.load_cert_chain(certificate, key)

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with suppress(OSError, asyncio.IncompleteReadError):
            if await reader.readexactly(len(SSL_REQUEST)) != SSL_REQUEST:
                writer.close()  # whoever comes without TLS is turned away
                return
            writer.write(b"S")
            await writer.start_tls(context)
            there_reader, there_writer = await asyncio.open_unix_connection(socket)
            await asyncio.gather(_pass_on(reader, there_writer), _pass_on(there_reader, writer))

    server = await asyncio.start_server(serve, "127.0.0.1", 0)
    try:
        yield TlsFront(server.sockets[0].getsockname()[1], certificate)
    finally:
        server.close()


async def _pass_on(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    with suppress(OSError):
        while portion := await reader.read(1 << 16):
            writer.write(portion)
            await writer.drain()
    writer.close()
