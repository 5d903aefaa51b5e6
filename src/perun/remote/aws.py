"""Credentials of S3 from where the tools of Amazon have them: the environment, `~/.aws`, what boto3 knows.

The library of object stores finds those of the environment, of containers and of machines of Amazon by
itself. What is read here goes to it alone, and into no message.
"""

from __future__ import annotations

import configparser
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

from perun.errors import PluginError, UsageError
from perun.extras import install_command

_FOUND_BY_LIBRARY: Final = (
    "AWS_ACCESS_KEY_ID",
    "AWS_WEB_IDENTITY_TOKEN_FILE",
    "AWS_CONTAINER_CREDENTIALS_RELATIVE_URI",
    "AWS_CONTAINER_CREDENTIALS_FULL_URI",
    "AWS_SKIP_SIGNATURE",
)
_BY_BOTO3: Final = ("sso_session", "sso_start_url", "role_arn", "credential_process", "login_session")
"""Settings of a profile whose credentials some program, or another server, gives."""
_KEYS: Final = {
    "aws_access_key_id": "access_key_id",
    "aws_secret_access_key": "secret_access_key",
    "aws_session_token": "session_token",
}


def found(environ: Mapping[str, str]) -> dict[str, Any]:
    """The options of a store that carry the credentials, and the region, of the user's profile.

    :param environ: says which profile, and where its files are, if not in `~/.aws`.
    :raises UsageError: if the profile that `AWS_PROFILE` names is not there, or the files cannot be read.
    :raises PluginError: if only boto3 knows how to get its credentials, and it is not installed.
    """
    settings = _profile(environ)
    region = {}
    if "region" in settings and not environ.get("AWS_REGION") and not environ.get("AWS_DEFAULT_REGION"):
        region["region"] = settings["region"]
    if any(environ.get(name) for name in _FOUND_BY_LIBRARY):
        return dict(region)
    if "aws_access_key_id" in settings:
        return region | {ours: settings[theirs] for theirs, ours in _KEYS.items() if theirs in settings}
    if any(name in settings for name in _BY_BOTO3):
        return region | {"credential_provider": _of_boto3(environ)}
    return dict(region)


def _profile(environ: Mapping[str, str]) -> dict[str, str]:
    name = environ.get("AWS_PROFILE") or environ.get("AWS_DEFAULT_PROFILE") or "default"
    home = Path(environ.get("HOME") or Path.home(), ".aws")
    config = Path(environ.get("AWS_CONFIG_FILE") or home / "config")
    credentials = Path(environ.get("AWS_SHARED_CREDENTIALS_FILE") or home / "credentials")
    settings: dict[str, str] = {}
    for path, section in (config, name if name == "default" else f"profile {name}"), (credentials, name):
        read = configparser.RawConfigParser(strict=False)
        try:
            read.read_string(path.read_text("utf-8"), str(path))
        except FileNotFoundError:
            continue
        except (OSError, ValueError, configparser.Error) as problem:
            # The text of a line could be a secret.
            raise UsageError(
                f"{path} cannot be read: {type(problem).__name__}", "see `aws configure`, or correct the file"
            ) from None
        if read.has_section(section):
            settings |= read.items(section)
    if not settings and environ.get("AWS_PROFILE"):
        raise UsageError(
            f"AWS_PROFILE names {name!r}, which neither {config} nor {credentials} has",
            "make it: aws configure --profile NAME, or name another one",
        )
    return settings


def _of_boto3(environ: Mapping[str, str]) -> object:
    try:
        import boto3
        from obstore.auth.boto3 import Boto3CredentialProvider
    except ModuleNotFoundError:
        raise PluginError(
            "the credentials of the profile of AWS come from another server or program, which boto3 asks",
            f"install it: {install_command('s3')} boto3",
        ) from None
    return Boto3CredentialProvider(boto3.Session(profile_name=environ.get("AWS_PROFILE")))
