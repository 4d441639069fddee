"""Clients of object stores: credentials, requests and their errors.

Endpoints and credentials are those that each store's own tools find: boto3's for S3 (environment, profile, SSO, role),
obstore's for the others (`GOOGLE_APPLICATION_CREDENTIALS`, `AZURE_STORAGE_...`). They are never written anywhere. `ask`
sends a request again after errors that may pass, and says what to do about those that will not. Importing this file
needs the standard library only; `obstore` and `boto3` (the extra `remote`) are needed for the first request.
"""

import errno
import os
import random
import re
import time
from collections.abc import Callable
from datetime import timedelta
from functools import lru_cache
from typing import Any, Final, TypeVar

from datakit.errors import ConfigError, InputError, MissingExtraError

T = TypeVar("T")

ATTEMPTS: Final = 6
"""How often a request is sent, with pauses of 0.2, 0.4, ... seconds; obstore repeats 5xx answers by itself, too."""
OF_THE_DISK: Final = (errno.ENOSPC, errno.EDQUOT, errno.EROFS, errno.EACCES, errno.ENOTDIR)
"""Errors of this machine's file system: sending the request again would not help."""
_CHOOSE: Final = ("AWS_", "AZURE_", "GOOGLE_", "STORAGE_")
"""Beginnings of the names of environment variables that choose another server or account."""
_NO_CREDENTIALS: Final = (
    "No credentials were found in the environment, in a profile or by the machine's role: set AWS_PROFILE, "
    "AWS_ACCESS_KEY_ID and so on, or AWS_SKIP_SIGNATURE=true to read a public bucket; docs/cluster.md names those of "
    "other stores"
)
_OPTIONS: Any = {"timeout": timedelta(seconds=300), "connect_timeout": timedelta(seconds=15)}
_RETRY: Any = {"max_retries": 5, "retry_timeout": timedelta(seconds=90)}


class NoAccessError(InputError):
    """The store refuses a request, and would again: no right, credentials that are wrong or too old, another region."""


def library() -> Any:
    """The library, imported when an object store is first asked.

    Raises:
        MissingExtraError: it is not installed.
    """
    try:
        import obstore
        import obstore.exceptions
        import obstore.store
    except ImportError:
        raise MissingExtraError("object stores need the package obstore: pip install 'datakit[remote]'") from None
    return obstore


def anonymous() -> bool:
    """Whether requests to S3 go without credentials."""
    return os.environ.get("AWS_SKIP_SIGNATURE", "").lower() in ("1", "true")


def aws() -> tuple[Any, str, str]:
    """(a boto3 session, the endpoint of S3, the region), from the environment and the user's profile.

    Raises:
        MissingExtraError: boto3 is not installed.
        ConfigError: there is no such profile, or its files cannot be read.
    """
    try:
        import boto3
        import botocore.exceptions
    except ImportError:
        raise MissingExtraError("s3:// needs the package boto3: pip install 'datakit[remote]'") from None
    try:
        session = boto3.Session(region_name=os.environ.get("AWS_REGION") or None)
        region = session.region_name or "us-east-1"
        return session, session.client("s3", region_name=region).meta.endpoint_url, region
    except (botocore.exceptions.BotoCoreError, ValueError) as e:
        raise ConfigError(f"the AWS configuration cannot be used: {e}") from None


@lru_cache(maxsize=64)
def client(scheme: str, bucket: str, _process: int, *_environment: str) -> Any:
    """The client of a bucket. A client does not survive a fork, hence the process in its key.

    Raises:
        MissingExtraError: a library is not installed.
        ConfigError: the configuration in the environment is of no use.
    """
    ob, options, own = library(), dict[str, Any](_OPTIONS), dict[str, Any]()
    try:
        if scheme == "s3":
            session, endpoint, region = aws()
            own = {"endpoint": endpoint, "region": region, "copy_if_not_exists": "multipart"}
            if not anonymous():
                from obstore.auth.boto3 import Boto3CredentialProvider

                if session.get_credentials() is None:
                    raise ConfigError(f"s3://{bucket}: {_NO_CREDENTIALS}")
                own["credential_provider"] = Boto3CredentialProvider(session)
        elif scheme == "gs":
            own = _emulated()
        else:
            endpoint = os.environ.get("AZURE_STORAGE_ENDPOINT") or os.environ.get("AZURE_ENDPOINT") or ""
            emulator = os.environ.get("AZURE_STORAGE_USE_EMULATOR", "").lower() in ("1", "true")
            endpoint = "http://" if emulator else endpoint
        # plain HTTP is for servers that the environment names; for Google a service account's file may name one
        options["allow_http"] = scheme == "gs" or endpoint.startswith("http://")
        kind = {"s3": ob.store.S3Store, "gs": ob.store.GCSStore, "az": ob.store.AzureStore}[scheme]
        return kind(bucket, client_options=options, retry_config=_RETRY, **own)
    except ob.exceptions.BaseError as e:
        raise ConfigError(f"{scheme}://{bucket}: {first_line(e)}") from None


def _emulated() -> dict[str, Any]:
    """Where the server of $STORAGE_EMULATOR_HOST is, as Google's clients know it: it takes any token."""
    host = os.environ.get("STORAGE_EMULATOR_HOST", "").rstrip("/")
    url = host if "://" in host else f"http://{host}"
    provider = lambda: {"token": "emulated", "expires_at": None}  # noqa: E731
    return {"base_url": url, "credential_provider": provider} if host else {}


def fsspec_store(url: str) -> Any:
    """The file system of a URL for those who read through fsspec.

    Raises:
        MissingExtraError: obstore is not installed.
    """
    library()
    from obstore.fsspec import FsspecStore

    scheme: Any = url.split("://")[0]
    options: Any = _OPTIONS | ({"allow_http": True} if scheme == "gs" else {})
    return FsspecStore(scheme, client_options=options, retry_config=_RETRY, **(_emulated() if scheme == "gs" else {}))


def arrow_s3() -> dict[str, Any]:
    """Options for Arrow's own S3 client, which finds credentials itself but no endpoint of a profile."""
    options: dict[str, Any] = {"anonymous": True} if anonymous() else {}
    try:
        _, endpoint, region = aws()
    except MissingExtraError:
        return options
    scheme, _, host = endpoint.partition("://")
    own = {} if ".amazonaws." in host else {"endpoint_override": host.rstrip("/"), "scheme": scheme, "region": region}
    return options | own


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


def _lasting(error: BaseException) -> str:
    """What to do about an error that the next attempt would get, too; empty for others."""
    errors, text = library().exceptions, str(error)
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
    return "Check the URL" if isinstance(error, (errors.InvalidPathError, errors.NotSupportedError)) else ""


def ask(scheme: str, bucket: str, key: str, request: Callable[[Any, str], T]) -> T:
    """Send a request about an object, again after errors that may pass; it is given the bucket's client and the key.

    Raises:
        FileNotFoundError: there is no such object.
        InputError: no bucket, no right, or still an error at the last attempt.
    """
    chosen = (f"{name}={value}" for name, value in os.environ.items() if name.startswith(_CHOOSE))
    store = client(scheme, bucket, os.getpid(), *sorted(chosen))
    errors = library().exceptions
    for attempt in range(1, ATTEMPTS + 1):
        try:
            return request(store, key)
        except (errors.AlreadyExistsError, errors.PreconditionError, errors.NotModifiedError):
            raise
        except (errors.BaseError, OSError) as e:
            if re.search("NoSuchBucket|ContainerNotFound|The specified bucket does not exist", str(e)):
                raise InputError(f"{scheme}://{bucket}: there is no such bucket; make it, or name another") from None
            if isinstance(e, OSError) and (isinstance(e, FileNotFoundError) or e.errno in OF_THE_DISK):
                raise
            if advice := _lasting(e):
                raise NoAccessError(f"{scheme}://{bucket}/{key}: {first_line(e)}. {advice}") from None
            if attempt == ATTEMPTS:
                # the addresses are those of a service that machines in a cloud have
                nobody = re.search(r"169\.254\.|metadata\.google", str(e))
                after = _NO_CREDENTIALS if nobody else "Finished work is kept: run the same command again"
                raise InputError(
                    f"{scheme}://{bucket}/{key}: still failing after {ATTEMPTS} attempts: {first_line(e)}. {after}"
                ) from None
            # jitter: many workers that failed together do not come back together
            time.sleep(0.2 * 2 ** (attempt - 1) * random.uniform(0.5, 1.5))
    raise AssertionError
