"""An image of a repository's choice, made into one that sandboxes start from."""

import hashlib
from collections.abc import Mapping

from docker import APIClient

from sandbox.errors import ImageError
from sandbox.guest_sandbox import AGENT_UID, HOME, VENV
from sandbox.images import build
from sandbox.types import WORKSPACE

REPOSITORY = "acrouter/adopted"
# What the image has installed for its own Python is seen in the environment.
_ADOPT = f"""
for program in python3 bash tar git; do
  command -v "$program" > /dev/null || {{ echo "$program is missing"; exit 1; }}
done
mkdir -p {WORKSPACE} {HOME}
chown {AGENT_UID}:{AGENT_UID} {WORKSPACE} {HOME}
without_pip=$(python3 -m pip --version > /dev/null 2>&1 && echo --without-pip)
[ -x {VENV}/bin/python ] || python3 -m venv --system-site-packages $without_pip {VENV} || exit 1
{VENV}/bin/python -m pytest --version > /dev/null 2>&1 ||
  {VENV}/bin/python -m pip install --no-cache-dir --requirement /opt/requirements.txt || exit 1
chown -R {AGENT_UID}:{AGENT_UID} {VENV}
"""


def ensure_pulled(api: APIClient, image: str) -> str:
    """Return `image`, pulled where it is not here.

    Raises:
        ImageError: it cannot be had.
    """
    if not build.is_present(api, image):
        build.pull(api, image)
    return image


def adopted(api: APIClient, image: str) -> str:
    """Return the name of what `image`, which is here, becomes as a sandbox's; another state of it has another one."""
    with build.docker_errors(f"look at {image}"):
        identity = str(api.inspect_image(image)["Id"])  # type: ignore[no-untyped-call]
    tag = hashlib.sha256(f"{identity} {build.recipe()} {_ADOPT}".encode()).hexdigest()[:16]
    return f"{REPOSITORY}:{tag}"


def ensure_adopted(api: APIClient, image: str, labels: Mapping[str, str]) -> str:
    """Return `image` with the folders and the Python environment of a sandbox; made once for each state of it.

    Raises:
        ImageError: it cannot be had, or lacks python3, bash, tar or git.
    """
    ensure_pulled(api, image)
    name = adopted(api, image)
    if not build.is_present(api, name):
        try:
            build.provision(api, image, name, f"{{ {_ADOPT.strip()}\n}}", {"acrouter.adopted": image, **labels})
        except ImageError as error:
            raise ImageError(
                f"The image {image} cannot be a sandbox's: it needs python3 (3.9 or newer) with venv, bash, tar and "
                f"git. {error}"
            ) from error
    return name
