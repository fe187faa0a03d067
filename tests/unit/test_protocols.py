"""The registry of protocols, and the modules that read words of a protocol from it."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import pytest
from pydantic import ValidationError

from gateway import protocols
from gateway.config.checks import OF_PROTOCOLS, find_mistakes
from gateway.policy import rules
from gateway.policy.rules import Rule
from gateway.wire.account import Action
from gateway.wire.plugin import COMMON, Plugin
from tests.support.faults import assert_none


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


# -- settings that protocols have --------------------------------------------------------------

SETTINGS = {f"{path}.{name}" for path, part in OF_PROTOCOLS.items() for name in part.model_fields}


def lacked(plugin: Plugin) -> Iterator[str]:
    """Yield the settings, and values of some, that a protocol lacks; none inside of others."""
    has = COMMON | plugin.settings
    for setting in SETTINGS | protocols.CHOICES:
        steps = setting.split(".")
        outer = {".".join(steps[:number]) for number in range(2, len(steps))}
        if outer <= has and setting not in has:
            yield setting


def test_each_setting_of_listeners_and_clusters_is_of_all_protocols_or_of_some() -> None:
    some = frozenset().union(*(plugin.settings for plugin in protocols.PLUGINS.values()))
    assert_none(f"{it}: no protocol has it" for it in SETTINGS - COMMON - some)
    assert_none(f"{it}: is no setting" for it in (COMMON | some) - protocols.CHOICES - SETTINGS)
    assert_none(f"{it}: all protocols have it" for it in COMMON & some)
    assert {it.partition("=")[0] for it in protocols.CHOICES} <= COMMON


@pytest.mark.parametrize("plugin", protocols.PLUGINS.values(), ids=lambda it: it.name)
def test_each_setting_that_a_protocol_lacks_has_a_reason(plugin: Plugin) -> None:
    assert set(plugin.instead) == set(lacked(plugin))


def found(listener: dict[str, Any], cluster: dict[str, Any] | None = None) -> list[str]:
    """Return the mistakes of a file that span settings."""
    data = {
        "listeners": [{"name": "a", "bind": ":1", "cluster": "main", **listener}],
        "clusters": {"main": {"brokers": "pulsar://a", **(cluster or {})}},
    }
    return [it.text for it in find_mistakes(data)]


def test_a_setting_that_no_protocol_names_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    plugin = replace(protocols.PLUGINS[protocols.DEFAULT], settings=frozenset())
    assert found({"checksums": "verify"}) == []
    monkeypatch.setitem(protocols.PLUGINS, plugin.name, plugin)
    said = "has no effect: pulsar has nothing of the kind; leave it out"
    assert found({"checksums": "verify"}) == [said]


def test_a_default_may_stand_where_a_setting_means_nothing() -> None:
    assert found({"client_metrics": "pass", "identity": {"mode": "pass-through"}}) == []
    assert len(found({"client_metrics": "hide"})) == 1


@pytest.mark.parametrize(("written", "mistakes"), [("false", 0), ("true", 1), (True, 1)])
def test_a_flag_that_means_nothing_may_be_false(written: object, mistakes: int) -> None:
    basic = {"username": "a", "password_file": "b", "without_tls": written}
    assert len(found({}, {"credential": {"basic": basic}})) == mistakes
