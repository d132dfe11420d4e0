"""Behind a company's proxy: commands know the way to packages, and no key."""

import os
import shutil
from pathlib import Path

import pytest

from ra.system.environment import clean
from ra.tools.sandbox import bubblewrap
from ra.tools.sandbox.box import Host
from ra.tools.sandbox.registries import registries
from tests.tools.world import world

NPMRC = """\
; of the company
registry = https://npm.example.org/
@shop:registry=https://npm.example.org/shop/
//npm.example.org/:_authToken=abc
//npm.example.org/:_password=abc
https-proxy=http://ann:abc@proxy.example.org:8080
strict-ssl=true
cafile=~/certs/company.pem
"""
PIP = """\
[global]
index-url = https://pip.example.org/simple
extra-index-url =
    https://one.example.org/simple
    https://two.example.org/simple
find-links = https://pip.example.org/wJalrXUtnFEMI0K7MDENG/simple
timeout = 60
[list]
proxy = http://proxy.example.org
"""


def test_the_users_files_name_registries_and_no_keys(tmp_path: Path) -> None:
    (tmp_path / ".npmrc").write_text(NPMRC)
    (tmp_path / ".config/pip").mkdir(parents=True)
    (tmp_path / ".config/pip/pip.conf").write_text(PIP)
    assert registries({"NPM_CONFIG_STRICT_SSL": "false"}, str(tmp_path)) == {
        "npm_config_registry": "https://npm.example.org/",
        "npm_config_@shop:registry": "https://npm.example.org/shop/",
        "npm_config_cafile": f"{tmp_path}/certs/company.pem",
        "PIP_INDEX_URL": "https://pip.example.org/simple",
        "PIP_EXTRA_INDEX_URL": "https://one.example.org/simple https://two.example.org/simple",
    }
    assert registries({}, "") == {}


@pytest.mark.parametrize(
    ("name", "value", "is_there"),
    [
        ("HTTPS_PROXY", "http://proxy.example.org:3128", True),
        ("https_proxy", "http://ann:secret@proxy.example.org:3128", False),
        ("NO_PROXY", "localhost,.example.org", True),
        ("PIP_INDEX_URL", "https://pip.example.org/simple", True),
        ("PIP_INDEX_URL", "https://pip.example.org/wJalrXUtnFEMI0K7MDENG/simple", False),
        ("UV_DEFAULT_INDEX", "https://__token__:secret@pip.example.org/simple", False),
        ("REQUESTS_CA_BUNDLE", "/etc/ssl/company.pem", True),
        ("NODE_EXTRA_CA_CERTS", "/home/ann/company.pem", True),
        ("NPM_TOKEN", "abc", False),
        ("PIP_PASSWORD", "abc", False),
    ],
)
def test_the_environment_tells_the_way_and_no_password(name: str, value: str, *, is_there: bool) -> None:
    assert (name in clean({name: value})) == is_there


@pytest.mark.skipif(not shutil.which("bwrap"), reason="bubblewrap is not installed")
def test_a_certificate_of_the_home_directory_can_be_read_in_the_box() -> None:
    with world(os.getuid()) as made:
        outer = made.base / "certificates"
        outer.mkdir()
        (outer / "other.pem").write_text("other\n")
        (made.home / "company.pem").write_text("company\n")
        (made.home / ".npmrc").write_text(f"cafile={made.home}/company.pem\n")
        box = bubblewrap.find(made.place(), Host(env={"SSL_CERT_DIR": f"/etc/ssl/certs:{outer}"}))
        assert box
        output = made.run(box, f"cat $npm_config_cafile {outer}/other.pem; ls ~")
        box.close()
    assert output == "company\nother\ncompany.pem\n"
