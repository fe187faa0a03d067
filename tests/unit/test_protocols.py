"""The registry of protocols, and the modules that read words of a protocol from it."""

from __future__ import annotations

from dataclasses import replace

import pytest
from pydantic import ValidationError

from gateway import protocols
from gateway.policy import rules
from gateway.policy.rules import Rule
from gateway.wire.account import Action


def test_each_plugin_is_found_by_name_and_scheme() -> None:
    for name, plugin in protocols.PLUGINS.items():
        assert plugin.name == name
        for scheme in plugin.schemes:
            assert protocols.plugin_of(f"{scheme.upper()}://host") is plugin
    assert protocols.plugin_of("smtp://host") is None


def test_no_two_protocols_share_a_scheme() -> None:
    schemes = [scheme for plugin in protocols.PLUGINS.values() for scheme in plugin.schemes]
    assert len(set(schemes)) == len(schemes) == len(protocols.SCHEMES)


def test_an_example_is_a_url_of_the_default_protocol() -> None:
    plugin = protocols.plugin_of(protocols.example("host"))
    assert plugin is protocols.PLUGINS[protocols.DEFAULT]


def test_a_rule_limits_only_actions_of_its_protocols(monkeypatch: pytest.MonkeyPatch) -> None:
    default = protocols.PLUGINS[protocols.DEFAULT]
    other = replace(default, name="other", actions=frozenset({Action.PRODUCE}))
    monkeypatch.setattr(rules, "PLUGINS", {"other": other})
    said = {"id": "a", "match": {"protocol": "other"}}
    assert Rule.model_validate(said | {"limit": {"publish": {"messages": "1/s"}}})
    with pytest.raises(ValidationError, match="limits lookups of other, which has no such thing"):
        Rule.model_validate(said | {"limit": {"lookups": "1/s"}})
