"""Clients of object stores: credentials, requests and their errors.

Endpoints and credentials are those that each store's own tools read from the environment (`AWS_ACCESS_KEY_ID`,
`AWS_ENDPOINT_URL`, `AWS_PROFILE`, `GOOGLE_APPLICATION_CREDENTIALS`, `AZURE_STORAGE_...`); they are never written
anywhere. `ask` sends a request again after errors that may pass, and says what to do about those that will not.
Importing this file needs the standard library only; `obstore` (the extra `remote`) is needed for the first request.
"""

import configparser
import errno
import hashlib
import hmac
import os
import random
import re
import time
from collections.abc import Callable
from datetime import timedelta
from functools import lru_cache
from pathlib import Path
from typing import Any, Final, TypeVar
from urllib.parse import quote, urlsplit
from urllib.request import Request, urlopen

from datakit.errors import ConfigError, InputError, MissingExtraError

T = TypeVar("T")

ATTEMPTS: Final = 6
"""How often a request is sent, with pauses of 0.2, 0.4, ... seconds; obstore repeats 5xx answers by itself, too."""
OF_THE_DISK: Final = frozenset({errno.ENOSPC, errno.EDQUOT, errno.EROFS, errno.EACCES, errno.ENOTDIR})
"""Errors of this machine's file system: sending the request again would not help."""
_CHOOSES: Final = (
    "AWS_ENDPOINT_URL", "AWS_ENDPOINT_URL_S3", "AWS_PROFILE", "AWS_ACCESS_KEY_ID", "GOOGLE_APPLICATION_CREDENTIALS",
    "STORAGE_EMULATOR_HOST", "AZURE_STORAGE_ACCOUNT_NAME", "AZURE_STORAGE_ENDPOINT",
)  # fmt: skip
"""Environment variables that choose another server or account."""


@lru_cache(maxsize=64)
def client(scheme: str, bucket: str, _process: int, *_environment: str) -> Any:
    """The client of a bucket. A client does not survive a fork, hence the process in its key.

    Raises:
        MissingExtraError: obstore is not installed.
        ConfigError: the configuration in the environment is of no use.
    """
    try:
        from obstore.store import AzureStore, GCSStore, S3Store
    except ImportError:
        raise MissingExtraError(
            f"{scheme}://{bucket}: object stores need the package obstore: pip install 'datakit[remote]'"
        ) from None
    try:
        if scheme == "s3":
            profile = aws_profile()
            options, retry = _client_options(scheme, profile.get("endpoint", ""))
            return S3Store(
                bucket, client_options=options, retry_config=retry, copy_if_not_exists="multipart", **profile
            )
        options, retry = _client_options(scheme, "")
        if scheme == "gs":
            return GCSStore(bucket, client_options=options, retry_config=retry, **_emulated())
        return AzureStore(bucket, client_options=options, retry_config=retry)
    except obstore_errors().BaseError as e:
        raise ConfigError(f"{scheme}://{bucket}: {first_line(e)}") from None


def fsspec_store(url: str) -> Any:
    """The file system of a URL for those who read through fsspec.

    Raises:
        MissingExtraError: obstore is not installed.
    """
    scheme: Any = url.split("://")[0]
    try:
        from obstore.fsspec import FsspecStore
    except ImportError:
        raise MissingExtraError(f"{url}: needs the package obstore: pip install 'datakit[remote]'") from None
    options, retry = _client_options(scheme, "")
    emulated = _emulated() if scheme == "gs" else {}
    return FsspecStore(scheme, client_options=options, retry_config=retry, **emulated)


def _emulated() -> dict[str, Any]:
    """Where the server of $STORAGE_EMULATOR_HOST is, as Google's clients know it: it takes any token."""
    host = os.environ.get("STORAGE_EMULATOR_HOST", "").rstrip("/")
    if not host:
        return {}
    url = host if "://" in host else f"http://{host}"
    return {"base_url": url, "credential_provider": lambda: {"token": "emulated", "expires_at": None}}


def _client_options(scheme: str, endpoint: str) -> tuple[Any, Any]:
    """(options, how to retry) of a client; plain HTTP is for servers that the environment names, only."""
    options: Any = {"timeout": timedelta(seconds=300), "connect_timeout": timedelta(seconds=15)}
    if scheme == "az":
        endpoint = os.environ.get("AZURE_STORAGE_ENDPOINT") or os.environ.get("AZURE_ENDPOINT") or ""
        emulated = os.environ.get("AZURE_STORAGE_USE_EMULATOR", "").lower() in ("1", "true")
        endpoint = "http://" if emulated else endpoint
    if endpoint.startswith("http://") or scheme == "gs":  # a service account's file may name a server
        options["allow_http"] = True
    return options, {"max_retries": 5, "retry_timeout": timedelta(seconds=90)}


def aws_profile() -> dict[str, Any]:
    """Credentials, region and endpoint for S3, of the user's AWS profile; what the environment names goes first.

    Raises:
        ConfigError: the profile is not there, or needs boto3 to sign in.
    """
    named, given = os.environ.get("AWS_PROFILE", ""), bool(os.environ.get("AWS_ACCESS_KEY_ID"))
    home = Path.home() / ".aws"
    config, own = (configparser.RawConfigParser(strict=False) for _ in range(2))
    try:
        config.read(os.environ.get("AWS_CONFIG_FILE") or home / "config", encoding="utf-8")
        own.read(os.environ.get("AWS_SHARED_CREDENTIALS_FILE") or home / "credentials", encoding="utf-8")
    except (configparser.Error, UnicodeDecodeError) as e:
        raise ConfigError(f"the AWS configuration cannot be read: {type(e).__name__} in {home}") from None
    found: dict[str, str] = {}
    for parser, section in ((own, named or "default"), (config, f"profile {named}" if named else "default")):
        found |= dict(parser[section]) if parser.has_section(section) else {}
    if named and not found:
        raise ConfigError(f"AWS_PROFILE={named}: no such profile in {home}/credentials or {home}/config")
    services = f"services {found.get('services', '')}"
    for_s3 = config[services].get("s3", "") if config.has_section(services) else ""
    endpoints = (
        os.environ.get("AWS_ENDPOINT_URL_S3"), os.environ.get("AWS_ENDPOINT_URL"),
        *re.findall(r"(?m)^\s*endpoint_url\s*=\s*(\S+)", for_s3), found.get("endpoint_url"),
    )  # fmt: skip
    keys = {
        "access_key_id": "aws_access_key_id",
        "secret_access_key": "aws_secret_access_key",
        "token": "aws_session_token",
    }
    taken: dict[str, Any] = {name: found[key] for name, key in keys.items() if found.get(key) and not given}
    taken |= {"endpoint": endpoint} if (endpoint := next(filter(None, endpoints), None)) else {}
    if not any(os.environ.get(name) for name in ("AWS_REGION", "AWS_DEFAULT_REGION")) and found.get("region"):
        taken["region"] = found["region"]
    if not given and found.keys() & {"sso_session", "sso_start_url", "role_arn", "credential_process"}:
        try:
            import boto3
            from obstore.auth.boto3 import Boto3CredentialProvider
        except ImportError:
            raise ConfigError(
                f"AWS_PROFILE={named or 'default'}: signs in by a role, by SSO or by a process: pip install boto3"
            ) from None
        taken["credential_provider"] = Boto3CredentialProvider(boto3.Session(profile_name=named or None))
    return taken


def arrow_s3() -> dict[str, Any]:
    """Options for Arrow's own S3 client, which knows no endpoint of a profile; empty where it finds all itself."""
    profile, anonymous = aws_profile(), os.environ.get("AWS_SKIP_SIGNATURE", "").lower() in ("1", "true")
    if "endpoint" not in profile and not anonymous:
        return {}
    names = {
        "access_key": "access_key_id", "secret_key": "secret_access_key", "session_token": "token", "region": "region"
    }  # fmt: skip
    options = {theirs: profile[ours] for theirs, ours in names.items() if ours in profile}
    options = {"anonymous": True} if anonymous else options
    if "endpoint" in profile:
        scheme, _, host = profile["endpoint"].rpartition("://")
        options |= {"endpoint_override": host.rstrip("/"), "scheme": scheme or "https"}
    return options


def obstore_errors() -> Any:
    """The module of obstore's exceptions."""
    from obstore import exceptions

    return exceptions


def reading_errors() -> tuple[type[Exception], ...]:
    """What reading an object raises through Arrow, fsspec or obstore, whose errors are no `OSError`."""
    try:
        from obstore.exceptions import BaseError
    except ImportError:
        return (OSError,)
    return (OSError, BaseError)


def first_line(error: BaseException) -> str:
    """What a client says about an error, without the server's page: `... 403 Forbidden (AccessDenied)`."""
    text = str(error)
    code = re.search(r"<Code>(\w+)</Code>", text)
    line = re.split(r"[\n<]", text, maxsplit=1)[0].strip().rstrip(":").split("Debug source")[0]
    line = re.sub(r" in [\d.]+(ns|µs|ms|s)\b|, after \d+ retries.*?retry_timeout: \d+s", "", line)
    return re.sub(r"([?&])[^ ]*", "", line) + (f" ({code[1]})" if code else "")


def _no_bucket(error: BaseException) -> bool:
    return re.search("NoSuchBucket|ContainerNotFound|The specified bucket does not exist", str(error)) is not None


class NoAccessError(InputError):
    """The store refuses a request, and would again: no right, credentials that are wrong or too old, another region."""


def _lasting(error: BaseException) -> str:
    """What to do about an error that the next attempt would get, too; empty for others."""
    errors, text = obstore_errors(), str(error)
    code = re.search(r"<Code>(\w+)</Code>", text)
    if "redirect without LOCATION" in text or "AuthorizationHeaderMalformed" in text:
        region = re.search(r"<Region>([\w-]+)</Region>|expecting '([\w-]+)'", text)
        return f"The bucket is in another region: set AWS_REGION{f'={region[1] or region[2]}' if region else ''}"
    refused = re.search(r"status code: 40[013]\b", text) and "169.254." not in text
    if (refused and (code is None or code[1] not in ("RequestTimeout", "IncompleteBody"))) or isinstance(
        error, (errors.PermissionDeniedError, errors.UnauthenticatedError)
    ):
        return (
            "Check the credentials, whether they have expired, what they may do here, the region (AWS_REGION) and this "
            "machine's clock"
        )
    lasting = isinstance(error, (errors.InvalidPathError, errors.NotSupportedError))
    return "Check the URL" if lasting else ""


def _again(error: BaseException) -> str:
    if re.search(r"169\.254\.|metadata\.google", str(error)):  # a service that machines in a cloud have
        return (
            "No credentials were found in the environment, in a profile or by the machine's role: set AWS_PROFILE, "
            "AWS_ACCESS_KEY_ID and so on, or AWS_SKIP_SIGNATURE=true to read a public bucket; docs/cluster.md names "
            "those of other stores"
        )
    return "Finished work is kept: run the same command again"


def ask(scheme: str, bucket: str, key: str, request: Callable[[Any, str], T]) -> T:
    """Send a request about an object, again after errors that may pass; it is given the bucket's client and the key.

    Raises:
        FileNotFoundError: there is no such object.
        InputError: no bucket, no right, or still an error at the last attempt.
    """
    store = client(scheme, bucket, os.getpid(), *(os.environ.get(name, "") for name in _CHOOSES))
    errors = obstore_errors()
    for attempt in range(1, ATTEMPTS + 1):
        try:
            return request(store, key)
        except (errors.AlreadyExistsError, errors.PreconditionError, errors.NotModifiedError):
            raise
        except (errors.BaseError, OSError) as e:
            if _no_bucket(e):
                raise InputError(f"{scheme}://{bucket}: there is no such bucket; make it, or name another") from None
            if isinstance(e, FileNotFoundError) or getattr(e, "errno", None) in OF_THE_DISK:
                raise
            if advice := _lasting(e):
                raise NoAccessError(f"{scheme}://{bucket}/{key}: {first_line(e)}. {advice}") from None
            if attempt == ATTEMPTS:
                raise InputError(
                    f"{scheme}://{bucket}/{key}: still failing after {ATTEMPTS} attempts: {first_line(e)}. {_again(e)}"
                ) from None
            # jitter: many workers that failed together do not come back together
            time.sleep(0.2 * 2 ** (attempt - 1) * random.uniform(0.5, 1.5))
    raise AssertionError


def signed(method: str, bucket: str, key: str, query: dict[str, str]) -> bytes:
    """The answer of S3 to a request that obstore does not know; empty without keys to sign it with."""
    own = aws_profile()
    access = own.get("access_key_id") or os.environ.get("AWS_ACCESS_KEY_ID")
    secret = own.get("secret_access_key") or os.environ.get("AWS_SECRET_ACCESS_KEY")
    token = own.get("token") or (os.environ.get("AWS_SESSION_TOKEN") if "access_key_id" not in own else None)
    region = own.get("region") or os.environ.get("AWS_REGION") or os.environ.get("AWS_DEFAULT_REGION") or "us-east-1"
    endpoint = own.get("endpoint")
    if not access or not secret:
        return b""
    base = f"{endpoint.rstrip('/')}/{bucket}" if endpoint else f"https://{bucket}.s3.{region}.amazonaws.com"
    parts = urlsplit(f"{base}/{quote(key)}")
    asked = "&".join(f"{quote(n, safe='')}={quote(v, safe='')}" for n, v in sorted(query.items()))
    now = time.strftime("%Y%m%dT%H%M%SZ", time.gmtime())
    empty = hashlib.sha256(b"").hexdigest()
    headers = {"host": parts.netloc, "x-amz-content-sha256": empty, "x-amz-date": now}
    headers |= {"x-amz-security-token": token} if token else {}
    listed = "".join(f"{n}:{v}\n" for n, v in sorted(headers.items()))
    signed = ";".join(sorted(headers))
    whole = "\n".join([method, parts.path, asked, listed, signed, empty])
    scope = f"{now[:8]}/{region}/s3/aws4_request"
    text = f"AWS4-HMAC-SHA256\n{now}\n{scope}\n{hashlib.sha256(whole.encode()).hexdigest()}"
    signing = f"AWS4{secret}".encode()
    for part in scope.split("/"):
        signing = hmac.digest(signing, part.encode(), "sha256")
    signature = hmac.digest(signing, text.encode(), "sha256").hex()
    headers["Authorization"] = (
        f"AWS4-HMAC-SHA256 Credential={access}/{scope}, SignedHeaders={signed}, Signature={signature}"
    )
    request = Request(f"{parts.scheme}://{parts.netloc}{parts.path}?{asked}", headers=headers, method=method)
    with urlopen(request, timeout=30) as answer:
        found: bytes = answer.read()
    return found
