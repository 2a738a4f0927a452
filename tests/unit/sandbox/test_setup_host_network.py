"""What a set-up is given of the host's way to package indexes."""

from pathlib import Path

from sandbox.host_network import CERTIFICATES, certificate_bundle, setup_environment


def test_variables_win_over_files_and_paths_of_the_host_stay_out(tmp_path: Path) -> None:
    config = tmp_path / "pip.conf"
    config.write_text(
        "[global]\nindex-url = https://one.example/simple\nextra-index-url = file:///opt/x https://two.example/simple\n"
        "constraint = /etc/constraints.txt\n[install]\ntimeout = 7\n",
        encoding="utf-8",
    )
    given = {
        "PIP_CONFIG_FILE": str(config),
        "PIP_TIMEOUT": "9",
        "PIP_FIND_LINKS": "/opt/wheels",
        "HTTPS_PROXY": "http://proxy.example:3128",
        "AWS_SECRET_ACCESS_KEY": "canary",
        "HOME": str(tmp_path),
        "XDG_CONFIG_DIRS": str(tmp_path),
    }
    found = setup_environment(certificates=False, environ=given)
    assert found["PIP_INDEX_URL"] == "https://one.example/simple"
    assert found["PIP_EXTRA_INDEX_URL"] == "https://two.example/simple"
    assert found["PIP_TIMEOUT"] == "9"
    assert found["HTTPS_PROXY"] == "http://proxy.example:3128"
    assert not {"PIP_FIND_LINKS", "PIP_CONSTRAINT", "AWS_SECRET_ACCESS_KEY"} & set(found)


def test_certificates_are_named_for_every_tool(tmp_path: Path) -> None:
    bundle = tmp_path / "ca.pem"
    bundle.write_text("PEM", encoding="ascii")
    assert certificate_bundle({"PIP_CERT": str(tmp_path / "gone"), "SSL_CERT_FILE": str(bundle)}) == b"PEM"
    found = setup_environment(certificates=True, environ={"HOME": str(tmp_path)})
    assert found["PIP_CERT"] == found["SSL_CERT_FILE"] == found["GIT_SSL_CAINFO"] == CERTIFICATES
