"""The volumes of a pod, as kubelets write them: all files of one change at once."""

from __future__ import annotations

import base64
import itertools
import shutil
from collections.abc import Callable, Mapping
from pathlib import Path

from tests.kubernetes.api import Api, Document

Localize = Callable[[str, bytes], bytes]
"""Changes a file, by its name, for this machine."""


class Volumes:
    """The volumes of one pod in a folder. `root`: stands for the root of its file systems."""

    def __init__(self, api: Api, manifest: Document, folder: Path, localize: Localize) -> None:
        self._api = api
        self._namespace = manifest["metadata"]["namespace"]
        self._volumes = manifest["spec"].get("volumes", [])
        self._folder = folder / "volumes"
        self._localize = localize
        self._written: dict[str, Mapping[str, bytes]] = {}
        self._numbers = itertools.count(1)
        self.root = folder / "root"
        self.root.mkdir(parents=True)

    def write(self) -> None:
        """Write what is new. Raises `MissingError`."""
        for volume in self._volumes:
            content = self._content(volume)
            if content != self._written.get(volume["name"]):
                self._replace(self._folder / volume["name"], content)
                self._written[volume["name"]] = content

    def mount(self, container: Document) -> dict[str, str]:
        """Mount volumes for a container; return where each path is then."""
        places = {}
        for mount in container.get("volumeMounts", []):
            place = self.root / mount["mountPath"].strip("/")
            volume = self._folder / mount["name"]
            place.parent.mkdir(parents=True, exist_ok=True)
            places[mount["mountPath"]] = str(place)
            if "subPath" in mount:  # stays as it is, in clusters too
                shutil.copyfile(volume / mount["subPath"], place)
            elif not place.is_symlink():
                place.symlink_to(volume)
        return places

    def _content(self, volume: Document) -> dict[str, bytes]:
        api = f"/api/v1/namespaces/{self._namespace}"
        if "configMap" in volume:
            found = self._api.get(f"{api}/configmaps/{volume['configMap']['name']}")
            content = {name: text.encode() for name, text in found.get("data", {}).items()}
            chosen = volume["configMap"].get("items")
        elif "secret" in volume:
            found = self._api.get(f"{api}/secrets/{volume['secret']['secretName']}")
            content = {name: base64.b64decode(it) for name, it in found.get("data", {}).items()}
            chosen = volume["secret"].get("items")
        else:
            assert "emptyDir" in volume, volume
            return {}
        if chosen:
            content = {it["path"]: content[it["key"]] for it in chosen}
        return {name: self._localize(name, it) for name, it in content.items()}

    def _replace(self, folder: Path, content: Mapping[str, bytes]) -> None:
        """Have `..data` lead to a new folder, in one step; each file leads there."""
        new = folder / f"..{next(self._numbers)}"
        new.mkdir(parents=True)
        for name, it in content.items():
            (new / name).write_bytes(it)
        data, next_data = folder / "..data", folder / "..data_new"
        next_data.symlink_to(new.name)
        next_data.replace(data)
        for name in content:
            if not (folder / name).is_symlink():
                (folder / name).symlink_to(f"..data/{name}")
        for old in folder.iterdir():
            if not old.name.startswith("..") and old.name not in content and old.is_symlink():
                old.unlink()
